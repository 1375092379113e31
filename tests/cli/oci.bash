# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Packed images for tests, by tar, sha256sum and jq alone: an OCI layout in ./layout, and what docker saves. Loaded by
# the *.bats that import images.

# add FILE TYPE: puts it among the layout's blobs; prints its descriptor
add() {
	local digest size
	digest=$(sha256sum "$1")
	digest=${digest%% *}
	size=$(stat -c %s "$1")
	mkdir -p layout/blobs/sha256
	cp "$1" "layout/blobs/sha256/$digest"
	printf '{"mediaType":"%s","digest":"sha256:%s","size":%s}' "$2" "$digest" "$size"
}

# What the next image is made of; add_layer fills it.
new_image() {
	layers=() diff_ids=()
}

# add_layer TAR [PACKER]: PACKER packs standard input: gzip, zstd, ... or nothing does
add_layer() {
	local type=application/vnd.oci.image.layer.v1.tar digest
	digest=$(sha256sum "$1")
	diff_ids+=("sha256:${digest%% *}")
	case ${2-} in
	'') cp "$1" packed ;;
	*) "$2" <"$1" >packed && type+=+$2 ;;
	esac
	layers+=("$(add packed "$type")")
}

# joined WORD...: with commas between them
joined() {
	local IFS=,
	echo "$*"
}

# add_manifest [CONFIG [MACHINE]]: the image of those layers; CONFIG is a JSON object. Prints the manifest's descriptor.
add_manifest() {
	local config=${1:-\{\}} machine=${2:-$(dpkg --print-architecture)} ids
	ids=$(printf '%s\n' "${diff_ids[@]}" | jq -Rnc '[inputs]')
	jq -nc --arg machine "$machine" \
		"{architecture: \$machine, os: \"linux\", config: $config, rootfs: {type: \"layers\", diff_ids: $ids}}" >config.json
	jq -nc "{schemaVersion: 2, config: $(add config.json application/vnd.oci.image.config.v1+json),
		layers: [$(joined "${layers[@]}")]}" >manifest.json
	add manifest.json application/vnd.oci.image.manifest.v1+json
}

# write_index DESCRIPTOR...: they are all that the layout has
write_index() {
	echo '{"imageLayoutVersion":"1.0.0"}' >layout/oci-layout
	jq -nc "{schemaVersion: 2, manifests: [$(joined "$@")]}" >layout/index.json
}

# make_trees: one.tar and two.tar, layers that a sandbox can be run on. The second removes and hides what the first has.
make_trees() {
	mkdir -p one/bin one/dir/sub one/hidden one/replaced two/dir two/hidden two/replaced
	cp /bin/busybox one/bin/busybox
	ln -s busybox one/bin/sh
	echo low >one/dir/low
	echo low >one/dir/both
	echo low >one/dir/sub/file
	echo low >one/hidden/low
	echo low >one/replaced/low
	echo low >one/file
	echo high >two/dir/both
	echo high >two/hidden/high
	echo high >two/replaced/high
	touch two/.wh.file two/dir/.wh.sub two/hidden/.wh..wh..opq two/.wh.replaced
	tar -cf one.tar -C one .
	tar -cf two.tar -C two .
}

# make_layout [CONFIG]: both of them, one with gzip, one with zstd
make_layout() {
	make_trees
	new_image
	add_layer one.tar gzip
	add_layer two.tar zstd
	write_index "$(add_manifest "$@")"
}

# make_docker_archive [TAG]: the same image as docker saved it before it knew OCI: saved.tar
make_docker_archive() {
	local config
	mkdir -p saved/one
	config=$(sha256sum config.json)
	config=${config%% *}.json
	cp config.json "saved/$config"
	cp one.tar saved/one/layer.tar
	cp two.tar saved/two.tar
	# it saves a layer that two images share once, and links to it
	mkdir -p saved/two
	ln -sf ../two.tar saved/two/layer.tar
	jq -nc --arg config "$config" --arg tag "${1:-test:1}" \
		'[{Config: $config, RepoTags: [$tag], Layers: ["one/layer.tar", "two/layer.tar"]}]' >saved/manifest.json
	tar -cf saved.tar -C saved .
}
