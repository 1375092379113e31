#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Images of OCI and docker: what is taken in, how layers are stacked and shared, what a run makes of the config, and
# what is refused.
load common
load oci

setup() {
	common_setup
}

nothing_half() {
	[ -z "$(ls -A "$AGENTDOCK_STATE_DIR/tmp")" ]
}

# refused TEXT: the image in layout/ is not taken, for that reason, and nothing stays of it
refused() {
	run --separate-stderr "$agentdock" image import layout x
	if [ "$status" != 125 ] || [[ $stderr != "agentdock: layout"*"$1"* || $stderr == *$'\n'* ]]; then
		printf 'status: %s\nstderr: %s\nwanted: %s\n' "$status" "$stderr" "$1" >&2
		return 1
	fi
	nothing_half
	[ "$("$agentdock" image list --json)" = "[]" ]
}

# edit FILTER: changes config and manifest.json by jq and makes all digests right again; FILTER sees {config, manifest}
edit() {
	jq -nc --slurpfile config config.json --slurpfile manifest manifest.json \
		"{config: \$config[0], manifest: \$manifest[0]} | $1" >edited.json
	jq -c .config edited.json >config.json
	jq -c --argjson config "$(add config.json application/vnd.oci.image.config.v1+json)" \
		'.manifest | if type == "object" and .config then .config = $config * {mediaType: .config.mediaType} else . end' edited.json >manifest.json
	write_index "$(add manifest.json application/vnd.oci.image.manifest.v1+json)"
}

# bats test_tags=any_kernel
@test "a layout, archives of it, plain and packed, and docker's archive are one image" {
	make_layout '{Env: ["A=b"], User: "7", Cmd: ["sh"]}'
	make_docker_archive
	tar -cf layout.tar -C layout .
	gzip -k layout.tar
	"$agentdock" image import layout a
	"$agentdock" image import layout.tar b
	"$agentdock" image import layout.tar.gz c
	"$agentdock" image import - d <layout.tar
	"$agentdock" image import saved.tar e
	"$agentdock" image import saved f
	[ "$("$agentdock" image list --json | jq -c 'length, .[0].names, .[0].layers == $ARGS.positional' --args "${diff_ids[@]}")" = \
		$'1\n["a:latest","b:latest","c:latest","d:latest","e:latest","f:latest"]\ntrue' ]
	nothing_half
}

@test "whiteouts, opaque directories and replaced ones: the layers are stacked as they were meant" {
	make_layout
	"$agentdock" image import layout x
	inside --image x -- sh -c 'find / -xdev -type f ! -path "/bin/*" ! -path "/etc/*" | sort
		cat /dir/both; ls -d /dir/sub /file 2>/dev/null; find / -xdev -type c'
	equal "the tree" "$output" $'/dir/both\n/dir/low\n/hidden/high\n/replaced/high\nhigh'
}

@test "a removed directory can be made again, and what is below stays away" {
	make_layout
	"$agentdock" image import layout x
	inside --image x -u 0 -- sh -c 'mkdir /dir/sub && ls -A /dir/sub && rm -r /hidden && mkdir /hidden && ls -A /hidden'
	[ -z "$output" ]
}

@test "each way to pack a layer, also in several pieces" {
	make_trees
	split -n 2 one.tar piece.
	two_gzips() { gzip <piece.aa && gzip <piece.ab; }
	two_zstds() { zstd -q <piece.aa && zstd -q <piece.ab; }
	local packer
	for packer in gzip zstd two_gzips two_zstds; do
		rm -rf layout
		new_image
		add_layer one.tar "$packer"
		layers[0]=${layers[0]/+two_gzips/+gzip}
		layers[0]=${layers[0]/+two_zstds/+zstd}
		write_index "$(add_manifest)"
		"$agentdock" image import layout "${packer/_/-}"
	done
	[ "$("$agentdock" image list --json | jq length)" = 1 ]
}

@test "a layer is unpacked once; gc keeps it while an image has it, or a sandbox stands on it" {
	make_layout
	"$agentdock" image import layout both
	local store=$AGENTDOCK_STATE_DIR/layers/sha256 before
	before=$(stat -c '%i %z' "$store/${diff_ids[0]#sha256:}/root")
	rm -rf layout
	new_image
	add_layer one.tar
	write_index "$(add_manifest)"
	"$agentdock" image import layout one
	[ "$(stat -c '%i %z' "$store/${diff_ids[0]#sha256:}/root")" = "$before" ]
	"$agentdock" image rm both
	[ "$("$agentdock" image gc --json | jq .layers)" = 1 ]
	[ "$(ls "$store")" = "${diff_ids[0]#sha256:}" ]
	inside --image one -- sh -c 'cat /file'
	[ "$output" = low ]
	start stands --image one
	"$agentdock" image rm one
	[ "$("$agentdock" image gc --json | jq .layers)" = 0 ]
	finish stands
	until [ "$("$agentdock" image gc --json | jq .layers)" = 1 ]; do [ -d "$store" ]; done
}

@test "a diff id that the store has is no proof that one has the layer" {
	make_layout
	"$agentdock" image import layout private
	local secret=${diff_ids[1]}
	rm -rf layout
	new_image
	add_layer one.tar
	mkdir other
	echo mine >other/mine
	tar -C other -cf other.tar .
	add_layer other.tar
	diff_ids[1]=$secret
	write_index "$(add_manifest)"
	run -125 --separate-stderr "$agentdock" image import layout thief
	[[ $stderr == *"it unpacks to sha256:"*" and not to the config's $secret"* ]]
	run -125 --separate-stderr "$agentdock" image inspect thief
}

@test "an image has the same size whether its layers were there or not" {
	make_layout
	"$agentdock" image import layout x
	"$agentdock" image inspect x --json | jq '.size_bytes, .entries' >first
	"$agentdock" image rm x
	"$agentdock" image import layout x
	equal "the size" "$("$agentdock" image inspect x --json | jq '.size_bytes, .entries')" "$(<first)"
}

@test "equal layers count once, and nothing counts below an opaque root" {
	make_trees
	new_image
	add_layer one.tar
	add_layer two.tar
	add_layer one.tar
	write_index "$(add_manifest)"
	"$agentdock" image import layout again
	[ "$("$agentdock" image inspect again --json | jq -c '.layers == $ARGS.positional' --args "${diff_ids[@]:1}")" = true ]
	inside --image again -- sh -c 'cat /file /dir/both; ls /hidden /replaced'
	equal "the tree" "$output" $'low\nlow\n/hidden:\nhigh\nlow\n\n/replaced:\nhigh\nlow'
	mkdir -p top/bin
	cp /bin/busybox top/bin/sh
	touch top/.wh..wh..opq
	tar -cf top.tar -C top .
	local round
	for round in first again; do
		new_image
		add_layer one.tar
		add_layer top.tar
		write_index "$(add_manifest)"
		"$agentdock" image import layout "opaque-$round"
		[ "$("$agentdock" image inspect "opaque-$round" --json | jq -c .layers)" = "[\"${diff_ids[1]}\"]" ]
		inside --image "opaque-$round" -- sh -c 'echo /*'
		[ "$output" = "/bin /dev /etc /proc /workspace" ]
	done
}

# ---- the config ----

@test "run does as the config says, and options stand above it" {
	make_layout '{Env: ["A=image", "B=image", "HOME=/dir", "GPG_KEY=public"], User: "1000:1001", WorkingDir: "/dir",
		Entrypoint: ["/bin/sh", "-c"], Cmd: ["pwd; id -u; id -g; echo $A $B $HOME $GPG_KEY"]}'
	"$agentdock" image import layout x
	inside --image x
	equal "as the config says" "$output" $'/dir\n1000\n1001\nimage image /dir public'
	inside --image x -e A=option -w / -u 7
	equal "with options" "$output" $'/\n7\n7\noption image /dir public'
	inside --image x -- 'echo $0 $B' word
	equal "with a command" "$output" "word image"
	mkdir workspace
	use_static_archiver
	inside --image x --workspace workspace
	equal "with a workspace" "$(head -1 <<<"$output")" /workspace
	inside --image x --entrypoint /bin/busybox -- echo word
	equal "with another entrypoint" "$output" word
	inside --image x --entrypoint '' -- /bin/busybox echo word
	equal "without an entrypoint" "$output" word
	fails "no command given; usage: agentdock run [options] -- COMMAND [ARG...]" run --image x --entrypoint ''
	run -0 "$agentdock" image inspect x
	[[ $output == *"env       A=image"*"user      1000:1001"*"workdir   /dir"*"entry     /bin/sh"* ]]
	[ "$("$agentdock" image inspect x --json | jq -c '.entrypoint, .user, .workdir')" = $'["/bin/sh","-c"]\n"1000:1001"\n"/dir"' ]
}

@test "an image without a config, or with null in it, is one" {
	make_layout '{Env: null, Entrypoint: null, Cmd: null, User: "", WorkingDir: ""}'
	"$agentdock" image import layout x
	inside --image x -- sh -c 'pwd; id -u'
	equal "the defaults" "$output" $'/workspace\n10001'
	fails "no command given; usage: agentdock run [options] -- COMMAND [ARG...]" run --image x
	edit 'del(.config.config)'
	"$agentdock" image import layout y
	[ "$("$agentdock" image list --json | jq length)" = 1 ]
}

@test "what a config says cannot drive the terminal" {
	make_layout '{Env: ["A=\u001b]0;owned\u0007"], User: "\u001b[2J", Cmd: ["\u001b[2J"]}'
	"$agentdock" image import layout x
	run -0 --separate-stderr "$agentdock" image inspect x
	[[ $output != *$'\033'* && $output == *'\x1b'* ]]
	run --separate-stderr "$agentdock" run --image x
	[ "$status" = 125 ]
	[[ $stderr != *$'\033'* ]]
}

@test "the user's name is looked up in the image, topmost layer first" {
	make_trees
	mkdir -p one/etc two/etc top/etc
	printf 'root:x:0:0::/:/bin/sh\nnode:x:1000:1001::/:\nbig:x:4294967294:7::/:\nbad:x:1:x::/:\n' >one/etc/passwd
	printf 'staff:x:50:node\n' >one/etc/group
	printf 'node:x:2000:2001::/:/bin/sh\n' >two/etc/passwd
	mkdir -p hide/etc
	touch top/etc/.wh.passwd hide/etc/.wh..wh..opq
	local layer
	for layer in one two top hide; do tar -cf $layer.tar -C $layer .; done
	local of user wanted
	while read -r of user wanted; do
		rm -rf layout
		new_image
		for layer in ${of//,/ }; do add_layer "$layer.tar"; done
		write_index "$(add_manifest "{User: \"$user\"}")"
		"$agentdock" image import layout x
		if [ "$wanted" = none ]; then
			fails "image x wants to be run as the user '$user', which it does not have; give --user UID[:GID]" \
				run --image x -- sh -c true
			continue
		fi
		inside --image x -- sh -c 'echo $(id -u):$(id -g)'
		equal "$user in $of" "$output" "$wanted"
	done <<-'END'
		one node 1000:1001
		one root 0:0
		one node:staff 1000:50
		one node:7 1000:7
		one 1000 1000:1001
		one 1000:staff 1000:50
		one 3000 3000:0
		one 3000:3001 3000:3001
		one nobody none
		one node:nobody none
		one bad none
		one :staff none
		one,two node 2000:2001
		one,two node:staff 2000:50
		one,two,top node none
		one,two,top 5:staff 5:50
		one,hide node none
	END
	rm -rf layout
	new_image
	add_layer one.tar
	write_index "$(add_manifest '{User: "big"}')"
	"$agentdock" image import layout x
	fails "image x wants to be run as the user 'big', which is 4294967294:7, and 65535 is the last that there is; give --user UID[:GID]" \
		run --image x -- true
	inside --image x -u 7 -- sh -c 'id -u'
	[ "$output" = 7 ]
}

# bats test_tags=any_kernel
@test "passwd and group may be anything: links, FIFOs, directories, noise" {
	make_trees
	mkdir -p one/etc
	local kind
	for kind in link fifo directory noise long; do
		rm -rf one/etc/passwd layout
		case $kind in
		link) ln -s /etc/passwd one/etc/passwd ;;
		fifo) mkfifo one/etc/passwd ;;
		directory) mkdir one/etc/passwd ;;
		noise) head -c 100000 /dev/urandom >one/etc/passwd ;;
		long) head -c 2000000 /dev/zero | tr '\0' : >one/etc/passwd ;;
		esac
		tar -cf one.tar -C one .
		new_image
		add_layer one.tar
		write_index "$(add_manifest '{User: "root"}')"
		"$agentdock" image import layout x
		[ "$("$agentdock" image inspect x --json | jq .uid)" = null ]
	done
}

# ---- which image ----

@test "this machine's image is taken, or the one that --arch and --ref say" {
	make_trees
	new_image
	add_layer one.tar
	local mine other
	mine=$(add_manifest '{Env: ["I=mine"]}')
	other=$(add_manifest '{Env: ["I=other"]}' s390x)
	jq -nc "{schemaVersion: 2, manifests: [$other * {platform: {os: \"linux\", architecture: \"s390x\"}},
		$mine * {platform: {os: \"linux\", architecture: \"$(dpkg --print-architecture)\"}},
		$mine * {digest: \"sha256:$(printf '%064d' 0)\", platform: {os: \"unknown\", architecture: \"unknown\"}}]}" >list.json
	write_index "$(add list.json application/vnd.oci.image.index.v1+json)"
	"$agentdock" image import layout x
	[ "$("$agentdock" image inspect x --json | jq -c .env)" = '["I=mine"]' ]
	"$agentdock" image import layout y --arch s390x
	[ "$("$agentdock" image inspect y --json | jq -c '.env, .architecture')" = $'["I=other"]\n"s390x"' ]
	fails "layout is refused: no image for linux on riscv64 is in it, but for: s390x, $(dpkg --print-architecture) (--arch)" \
		image import layout z --arch riscv64
	# without "platform" the config tells
	write_index "$other" "$mine"
	"$agentdock" image import layout x
	[ "$("$agentdock" image inspect x --json | jq -c .env)" = '["I=mine"]' ]
	mine=$(jq -c '.annotations = {"org.opencontainers.image.ref.name": "one"}' <<<"$mine")
	local more
	more=$(add_manifest '{Env: ["I=two"]}' | jq -c '.annotations = {"org.opencontainers.image.ref.name": "two"}')
	write_index "$mine" "$more"
	fails "layout is refused: it holds several images for $(dpkg --print-architecture): one, two; choose one with --ref" \
		image import layout z
	fails "layout is refused: no image for $(dpkg --print-architecture) is called three in it, but: one, two" \
		image import layout z --ref three
	"$agentdock" image import layout x --ref two
	[ "$("$agentdock" image inspect x --json | jq -c .env)" = '["I=two"]' ]
	"$agentdock" image import layout x --ref one
	[ "$("$agentdock" image inspect x --json | jq -c .env)" = '["I=mine"]' ]
}

# ---- what is damaged ----

# blob TYPE: the file of the blob that has the role: layer, config or manifest
blob() {
	case $1 in
	layer) jq -r '.layers[1].digest' manifest.json ;;
	config) jq -r .config.digest manifest.json ;;
	manifest) jq -r '.manifests[0].digest' layout/index.json ;;
	esac | sed 's,sha256:,layout/blobs/sha256/,'
}

# bats test_tags=any_kernel
@test "a blob that is not what its digest says is named, whatever it is" {
	make_layout
	local role file
	for role in layer config manifest; do
		file=$(blob "$role")
		cp "$file" whole
		# another byte at the end, of the same length
		{ head -c -1 whole && tail -c 1 whole | tr '\0-\377' '\1-\377\0'; } >"$file"
		refused "${file#layout/} is damaged: its digest is sha256:$(sha256sum <"$file" | cut -d ' ' -f 1)"
		head -c 20 whole >"$file"
		refused "${file#layout/} is damaged: "
		rm "$file"
		refused "${file#layout/} is missing"
		mkfifo "$file"
		refused "${file#layout/} is no file"
		rm "$file"
		ln -s /etc/passwd "$file"
		refused "${file#layout/} leads out of the image, or is no file"
		rm "$file"
		cp whole "$file"
	done
	"$agentdock" image import layout x
}

@test "a layer that unpacks to something else than the config says is refused, by name" {
	make_layout
	jq -c '.rootfs.diff_ids |= reverse' config.json >other && mv other config.json
	edit .
	refused "layer 1: blobs/sha256/"
	[[ $stderr == *"it unpacks to ${diff_ids[0]} and not to the config's ${diff_ids[1]}" ]]
	# the first of two is whole, and nobody has it
	edit ".config.rootfs.diff_ids = [\"${diff_ids[0]}\", \"sha256:$(printf '%064d' 0)\"]"
	refused "layer 2: blobs/sha256/"
	[ -z "$(ls -A "$AGENTDOCK_STATE_DIR/layers/sha256")" ]
}

@test "a docker-archive that is damaged is refused, by the config's name and the diff ids" {
	make_layout
	make_docker_archive
	echo x >>saved/two.tar
	run --separate-stderr "$agentdock" image import saved x
	[ "$status" = 125 ]
	[[ $stderr == "agentdock: saved: layer 2: two/layer.tar: it unpacks to "* ]]
	cp two.tar saved/two.tar
	jq -c '.os = "linux "' config.json >"saved/$(jq -r '.[0].Config' saved/manifest.json)"
	run --separate-stderr "$agentdock" image import saved x
	[ "$status" = 125 ]
	[[ $stderr == "agentdock: saved is refused: "*".json is damaged: its digest is sha256:"* ]]
	nothing_half
}

# ---- what is hostile ----

# bats test_tags=any_kernel
@test "manifests and configs that ask for what is not theirs, in one line each" {
	make_layout
	cp config.json config.whole
	cp manifest.json manifest.whole
	local filter text
	while IFS='#' read -r filter text; do
		cp config.whole config.json
		cp manifest.whole manifest.json
		edit "$filter"
		refused "$text" || { echo "$filter" >&2; return 1; }
	done <<-'END'
		.manifest.layers[0].digest = "sha256:../../../../../../etc/passwd"#no sha256 digest
		.manifest.layers[0].digest = "sha512:00"#sha512:00: no sha256 digest, others are not supported
		.manifest.layers[0].digest = 7#the key 'digest' must be of type string
		.manifest.layers[0].size = 7#is damaged: it has
		.manifest.layers[0].size = -1#the key 'size' must not be negative
		.manifest.layers[0].mediaType = "application/vnd.oci.image.layer.v1.tar+encrypted"#a layer of type application/vnd.oci.image.layer.v1.tar+encrypted is not supported
		.manifest.layers = []#0 layers: there must be 1 to 64
		.manifest.layers = [range(65) as $i | .manifest.layers[0]]#65 layers: there must be 1 to 64
		.manifest.layers = {}#the key 'layers' must be of type array
		.manifest.layers = [7, 8]#is looked for in what is no JSON object
		.manifest.config.mediaType = "application/vnd.cncf.helm.config.v1+json"#but for: application/vnd.cncf.helm.config.v1+json
		del(.manifest.config)#the key 'config' is missing
		.manifest = []#is looked for in what is no JSON object
		.config.rootfs.diff_ids |= .[:1]#the manifest has 2 layers and the config 1
		.config.rootfs.diff_ids[1] = "sha256:.."#diff_ids: entry 1 is no sha256 digest
		.config.rootfs.diff_ids[1] = null#diff_ids: entry 1 is no sha256 digest
		del(.config.rootfs)#the key 'rootfs' is missing
		.config.architecture = null#the key 'architecture' must be of type string
		.config.os = "windows"#no image for linux on
		.config.config.Env = ["A"]#Env: entry 0 is no KEY=VALUE
		.config.config.Env = ["=x"]#Env: entry 0 is no KEY=VALUE
		.config.config.Env = [7]#Env: entry 0 is no string
		.config.config.Env = "A=b"#the key 'Env' must be of type array
		.config.config.Env = [range(3000) | "A=b"]#Env has 3000 entries; 2048 are the most
		.config.config.Cmd = ["x" * 300000]#take more than 256 KiB
		.config.config.User = "u" * 200#the config's user has 200 bytes; 127 are the most
		.config.config.WorkingDir = "/" * 2000#the config's working directory has 2000 bytes; 1023 are the most
		.config = []#is looked for in what is no JSON object
		.config.history = [range(100000) | "x" * 20]#a document of an image may have 1048576
	END
}

# raw FILE TEXT: TEXT stands in the layout's FILE
raw() {
	printf '%s' "$2" >"layout/$1"
}

# bats test_tags=any_kernel
@test "indexes and JSON that ask for too much" {
	make_layout
	local index manifest depth
	index=$(<layout/index.json)
	manifest=$(jq -c '.manifests[0]' layout/index.json)
	raw index.json "${index%\}},\"manifests\":[]}"
	refused "index.json: JSON: the key 'manifests' is there twice"
	raw index.json "$(printf '[%.0s' {1..100})"
	refused "index.json: JSON: nesting too deep"
	raw index.json "$(printf '[%.0s' {1..500000})"
	refused "index.json: JSON: nesting too deep"
	raw index.json '{"manifests":['"$(printf '[],%.0s' {1..300000})"'[]]}'
	refused "is looked for in what is no JSON object"
	raw index.json "$(printf '%1048577s' '')"
	refused "index.json has 1048577 bytes; a document of an image may have 1048576"
	raw index.json '{"manifests":['
	refused "index.json: JSON: unexpected end"
	raw index.json $'{"manifests":["\xff"]}'
	refused "index.json: JSON: invalid UTF-8"
	raw index.json '{"manifests":[]}'
	refused "no image for linux on"
	# an index in an index in an index ...
	depth=$manifest
	for _ in {1..4}; do
		jq -nc "{manifests: [$depth]}" >list.json
		depth=$(add list.json application/vnd.oci.image.index.v1+json)
	done
	write_index "$depth"
	refused "more than 4 indexes within each other"
	# the same one over and over
	jq -nc "{manifests: [$manifest]}" >list.json
	depth=$(add list.json application/vnd.oci.image.index.v1+json)
	jq -nc "{manifests: [range(300) | $depth]}" >layout/index.json
	refused "more than 256 indexes, manifests and configs"
	raw index.json "$index"
	raw oci-layout '{"imageLayoutVersion":"2.0.0"}'
	refused "an OCI layout of version 2.0.0; 1.0 is supported"
	raw oci-layout '7'
	refused "is looked for in what is no JSON object"
}

# bats test_tags=any_kernel
@test "a docker-archive whose layers lie elsewhere" {
	make_layout
	make_docker_archive
	local path
	for path in ../layout/oci-layout /etc/passwd two/../../layout/oci-layout out; do
		ln -sf ../layout/oci-layout saved/out
		jq -c --arg path "$path" '.[0].Layers[0] = $path' saved/manifest.json >manifest && mv manifest saved/manifest.json
		run --separate-stderr "$agentdock" image import saved x
		[ "$status" = 125 ]
		equal "$path" "$stderr" "agentdock: saved is refused: $path leads out of the image, or is no file"
	done
	fails "saved is refused: manifest.json is not docker's: it is no array" image import saved x --arch "$(
		echo '{}' >saved/manifest.json
		dpkg --print-architecture
	)"
	nothing_half
}

# bats test_tags=any_kernel
@test "the limit of an image is that of all its layers together" {
	mkdir one two
	truncate -s 20G one/hole two/hole
	truncate -s 1M two/other
	local layer
	for layer in one two; do tar -cSf $layer.tar -C $layer .; done
	new_image
	add_layer one.tar
	write_index "$(add_manifest)"
	"$agentdock" image import layout x
	"$agentdock" image rm x
	"$agentdock" image gc
	add_layer two.tar
	write_index "$(add_manifest)"
	refused "layer 2: blobs/sha256/$(sha256sum <two.tar | cut -d ' ' -f 1) is too large: more than 12 GiB: hole"
}

# bats test_tags=any_kernel
@test "an unpacker that was taken over marks no directory but those of its layer as opaque" {
	mkdir -p one/bin one/real outside fake
	cp /bin/busybox one/bin/sh
	ln -s "$PWD/outside" one/link
	tar -cf one.tar -C one .
	new_image
	add_layer one.tar
	write_index "$(add_manifest)"
	local libexec=${AGENTDOCK_LIBEXEC:-$build} name
	for name in ../../../../../outside "$PWD/outside" link link/. /proc/self/root bin/sh absent ''; do
		cat >fake/agentdock-archive <<-END
			#!/bin/bash
			"$libexec/agentdock-archive" "\$@" || exit
			[[ "\$*" != *"--mode layer"* ]] || printf '\\1\\0\\0\\0%s\\0' '$name' >&6
		END
		chmod +x fake/agentdock-archive
		AGENTDOCK_LIBEXEC=$PWD/fake run --separate-stderr "$agentdock" image import layout x
		[ "$status" = 125 ]
		[[ $stderr == "agentdock: layout: layer 1: the opaque directory $name: "* ]]
		python3 -c 'import os; assert not [a for a in os.listxattr("outside") if "overlay" in a]'
		nothing_half
	done
	# what it does name is marked: the test can see it
	sed -i "s/%s/real/" fake/agentdock-archive
	AGENTDOCK_LIBEXEC=$PWD/fake "$agentdock" image import layout x
	python3 -c 'import os, sys; assert os.getxattr(sys.argv[1], "trusted.overlay.opaque") == b"y"' \
		"$AGENTDOCK_STATE_DIR/layers/sha256/${diff_ids[0]#sha256:}/root/real"
}

# bats test_tags=any_kernel
@test "one layer is no image, and says so" {
	make_trees
	tar -cf layer.tar -C two ./.wh.file ./dir
	fails "layer.tar is refused: .wh.file: a whiteout, so this is one layer of an image and no root file system; import the whole image" \
		image import layer.tar x
}

# bats test_tags=any_kernel
@test "a root file system that has a manifest.json is none of docker's" {
	mkdir -p tree/bin
	cp /bin/busybox tree/bin/sh
	echo '{}' >tree/manifest.json
	"$agentdock" image import tree x
	tar -cf tree.tar -C tree .
	"$agentdock" image import tree.tar y
	nothing_half
}

# ---- export, bundle ----

@test "an export holds what the image has; imported and exported again it is the same" {
	make_layout '{Env: ["A=b"], User: "7:8", WorkingDir: "/dir", Entrypoint: ["sh", "-c"], Cmd: ["pwd"]}'
	"$agentdock" image import layout x
	run -0 "$agentdock" image export x first.tar
	[ -z "$output" ]
	"$agentdock" image import first.tar y
	"$agentdock" image export y - >second.tar
	"$agentdock" image import second.tar z
	"$agentdock" image export z third.tar
	tar -xOf second.tar index.json | jq 'del(.manifests[].annotations)' >second.json
	tar -xOf third.tar index.json | jq 'del(.manifests[].annotations)' >third.json
	cmp second.json third.json
	[ "$(tar -xOf first.tar index.json | jq -r '.manifests[0].annotations[]')" = x:latest ]
	[ "$("$agentdock" image inspect y --json | jq -c '.env, .user, .workdir, .entrypoint, .cmd')" = \
		"$("$agentdock" image inspect x --json | jq -c '.env, .user, .workdir, .entrypoint, .cmd')" ]
	local image
	for image in x y z; do
		inside --image "$image" -- 'find / -xdev -type f ! -path "/bin/*" ! -path "/etc/*" | sort; cat /dir/both'
		equal "$image" "$output" $'/dir/both\n/dir/low\n/hidden/high\n/replaced/high\nhigh'
	done
	nothing_half
}

# bats test_tags=any_kernel
@test "a root file system is exported with its owners, modes and attributes" {
	mkdir -p tree/bin tree/d
	cp /bin/busybox tree/bin/sh
	ln tree/bin/sh tree/bin/again
	chown 7:8 tree/d
	chmod 2750 tree/d
	setcap cap_net_raw+ep tree/bin/sh
	"$agentdock" image import tree x
	"$agentdock" image export x x.tar
	"$agentdock" image import x.tar y
	[ "$("$agentdock" image inspect x --json | jq .layers)" = "$("$agentdock" image inspect y --json | jq .layers)" ]
	[ "$("$agentdock" image list --json | jq length)" = 1 ]
}

# bats test_tags=any_kernel
@test "export and bundle: what is refused" {
	mkdir -p tree/bin full
	cp /bin/busybox tree/bin/sh
	touch full/file there
	"$agentdock" image import tree x
	fails "there is there; remove it, or give another name" image export x there
	fails "full is not empty; give a directory that is not there yet" image bundle x full
	fails "image y: not in $AGENTDOCK_STATE_DIR; see \`agentdock image list\`, or import it with \`agentdock image import SOURCE NAME\`" \
		image export y file
	[ ! -e file ]
	fails "image export: unknown or incomplete option --json; usage: agentdock image export REF FILE" image export x file --json
	# a disk that is full is an error, and half a file does not stay
	run --separate-stderr sh -c '"$0" image export x - >/dev/full' "$agentdock"
	[ "$status" = 125 ]
	[[ $stderr == "agentdock: x:latest: "*"No space left on device"* ]]
	nothing_half
}

@test "a bundle is what crun runs, as the config says" {
	command -v crun >/dev/null || skip "crun is not installed"
	[ "$(id -u)" = 0 ] || skip "crun needs root"
	make_layout '{Env: ["A=b"], User: "7:8", WorkingDir: "/dir", Entrypoint: ["/bin/sh", "-c"],
		Cmd: ["pwd; id -u; id -g; echo $A; ls /hidden /dir; find / -xdev -type c"]}'
	"$agentdock" image import layout x
	"$agentdock" image bundle x bundle
	[ "$(find bundle -type c)" = "" ] && [ "$(stat -c %a bundle)" = 700 ]
	# crun 1.8 takes no v2 tree beside v1's
	run -0 unshare -m sh -ec 'if [ -d /sys/fs/cgroup/unified ]; then umount /sys/fs/cgroup/unified; fi
		exec crun --root "$1/crun" --cgroup-manager=cgroupfs run -b "$1/bundle" "$2"' sh "$PWD" "agentdock-test-$$"
	equal "what it said" "$output" $'/dir\n7\n8\nb\n/dir:\nboth\nlow\n\n/hidden:\nhigh'
}
