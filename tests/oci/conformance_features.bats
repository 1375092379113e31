#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# features.md and features-linux.md of the runtime-spec: what the document says, the runtime does.

load common

# feature JQ-FILTER: of the features document, a line each
feature() {
	jq -er "$1" <<<"$features" || skip "the features document does not say"
}

# The document is optional.
document() {
	features=$(oci features 2>/dev/null) || skip "the runtime has no features document"
}

# ---- Specification version ----

@test "features:version-1 ociVersionMin is required" {
	document
	jq -e '.ociVersionMin | type == "string"' <<<"$features"
}

@test "features:version-2 ociVersionMin must be accepted as ociVersion" {
	document
	edit '.ociVersion = $version' --arg version "$(feature .ociVersionMin)"
	script_runs 'echo ran'
	says ran
}

@test "features:version-3 ociVersionMax is required" {
	document
	jq -e '.ociVersionMax | type == "string"' <<<"$features"
}

@test "features:version-4 ociVersionMax must be accepted as ociVersion" {
	document
	edit '.ociVersion = $version' --arg version "$(feature .ociVersionMax)"
	script_runs 'echo ran'
	says ran
}

@test "features:version-5 ociVersionMax must not be less than ociVersionMin" {
	document
	[ "$(printf '%s\n' "$(feature .ociVersionMin)" "$(feature .ociVersionMax)" | sort -V | head -n 1)" = "$(feature .ociVersionMin)" ]
}

@test "features:version-6 the document must not contain properties that the specification does not define" {
	document
	[ "$(jq -c '(keys - ["annotations", "hooks", "linux", "mountOptions", "ociVersionMax", "ociVersionMin",
			"potentiallyUnsafeConfigAnnotations"])
		+ (.linux // {} | keys - ["apparmor", "capabilities", "cgroup", "intelRdt", "memoryPolicy", "mountExtensions",
			"namespaces", "netDevices", "seccomp", "selinux"])
		+ (.linux.cgroup // {} | keys - ["v1", "v2", "systemd", "systemdUser", "rdma"])
		+ (.linux.seccomp // {} | keys - ["enabled", "actions", "operators", "archs", "knownFlags", "supportedFlags"])
		+ (.linux.apparmor // {} | keys - ["enabled"]) + (.linux.selinux // {} | keys - ["enabled"])
		+ (.linux.intelRdt // {} | keys - ["enabled", "schemata", "monitoring", "enableMonitoring"])
		+ (.linux.memoryPolicy // {} | keys - ["modes", "flags"])
		+ (.linux.mountExtensions // {} | keys - ["idmap"]) + (.linux.netDevices // {} | keys - ["enabled"])' \
		<<<"$features")" = '[]' ]
}

# ---- Hooks, mount options, annotations ----

@test "features:hooks-1 each of hooks must be supported" {
	document
	local kind kinds
	kinds=$(feature '.hooks[]')
	for kind in $kinds; do
		if [ "$kind" = startContainer ]; then hook $kind 'echo >/called'; else hook "$kind" "echo >$here/called.$kind"; fi
	done
	up_until_told
	tell
	until_true oci_status_is stopped
	oci_delete
	[ ! -e "$rootfs/called" ] || touch "$here/called.startContainer"
	for kind in $kinds; do [ -e "$here/called.$kind" ]; done
}

@test "features:mountOptions-1 each of mountOptions must be recognized" {
	document
	local options
	options=$(jq -c '.mountOptions // empty' <<<"$features")
	[ -n "$options" ] || skip "the features document does not say"
	mkdir "$bundle/data"
	# A mount for each: of a directory where the option is about bind mounts or what is below, else of a tmpfs, which
	# refuses what it does not know. A bind mount takes any word, so that each is tried on a tmpfs where it can be.
	edit '.mounts += [$options[] | . as $option | {"destination": "/mnt/\($option)"} + (
		if IN("bind", "rbind") then {"source": "data", "options": [$option]}
		elif IN("idmap", "ridmap") then {"source": "data", "options": ["rbind", $option],
			"uidMappings": [{"containerID": 0, "hostID": 1, "size": 9}],
			"gidMappings": [{"containerID": 0, "hostID": 1, "size": 9}]}
		elif . == "remount" then {"destination": "/proc", "type": "proc", "source": "proc", "options": ["remount"]}
		elif startswith("copy-symlink") or startswith("src-") or startswith("dest-") then {"source": "data", "options": ["bind", $option]}
		else {"type": "tmpfs", "source": "tmpfs", "options": [$option]} end)]' --argjson options "$options"
	script_runs 'while read -r id parent dev root where rest; do case $where in /mnt/*) echo ${where#/mnt/};; esac
		done </proc/self/mountinfo | sort'
	says "$(jq -r '.[] | select(. != "remount")' <<<"$options" | LC_ALL=C sort)"
}

@test "features:annotations-1 annotations must be a map of strings" {
	document
	jq -e '.annotations // {} | type == "object" and all(to_entries[]; .key != "" and (.value | type == "string"))' <<<"$features"
}

# ---- features-linux.md ----

@test "features-linux:namespaces-1 each of namespaces must be recognized" {
	document
	feature '.linux.namespaces[]' >/dev/null
	use_user_namespace
	edit '.linux.namespaces = [$features.linux.namespaces[] | {"type": .}]' --argjson features "$features"
	# what is recognized need not be in this kernel
	[ -e /proc/self/ns/time ] || edit 'del(.linux.namespaces[] | select(.type == "time"))'
	up_until_told
	local pid kind files=()
	pid=$(oci_pid)
	for kind in $(jq -r '.linux.namespaces[].type' "$config"); do
		case $kind in
		mount) files+=(mnt) ;;
		network) files+=(net) ;;
		*) files+=("$kind") ;;
		esac
	done
	for kind in "${files[@]}"; do
		[ "$(readlink "/proc/$pid/ns/$kind")" != "$(readlink "/proc/self/ns/$kind")" ]
	done
}

@test "features-linux:capabilities-1 each of capabilities must be recognized" {
	document
	feature '.linux.capabilities[]' >/dev/null
	# what nobody here may have is no matter of what the runtime knows
	local mask
	read -r _ mask < <(grep CapBnd /proc/self/status)
	edit '.process.capabilities = {"bounding": ($features.linux.capabilities
			- (if $lacks then ["CAP_SYS_RESOURCE"] else [] end))}' \
		--argjson features "$features" --argjson lacks "$([ $((0x$mask >> 24 & 1)) = 1 ] && echo false || echo true)"
	script_runs 'while read -r name set; do [ $name != CapBnd: ] || echo $set; done </proc/self/status'
	says "$mask"
	[[ $stderr != *CAP_* ]]
}

# with_filter SECCOMP [JQ-OPTION...]: the container has this filter, and runs; SCMP_ACT_NOTIFY gets somebody who listens
with_filter() {
	local filter=$1
	shift
	mkfifo "$here/listening"
	"$root/tests/oci/console" "$here/listener" >"$here/said" 2>"$here/listening" 3>&- &
	listener=$!
	read -r -t 10 _ <>"$here/listening"
	edit ".linux.seccomp = ({\"defaultAction\": \"SCMP_ACT_ALLOW\"} + $filter)
		| if .linux.seccomp | tostring | contains(\"SCMP_ACT_NOTIFY\") then .linux.seccomp.listenerPath = \"$here/listener\" else . end" \
		"$@" --argjson features "$features"
	script_runs 'while read -r name mode; do [ $name != Seccomp: ] || echo $mode; done </proc/self/status'
	kill "$listener" 2>/dev/null || true
	wait "$listener" || true
	rm -f "$here/listening" "$here/listener"
	# there is a filter
	says 2
}

# the calls are such as no shell makes
readonly rare='["acct", "swapon", "swapoff", "reboot", "settimeofday", "sethostname", "setdomainname", "kexec_load", "quotactl", "add_key"]'

@test "features-linux:seccomp-1 each of actions must be recognized" {
	document
	feature '.linux.seccomp.actions[]' >/dev/null
	with_filter '{"syscalls": [$features.linux.seccomp.actions | to_entries[]
		| {"names": [$rare[.key]], "action": .value}]}' --argjson rare "$rare"
}

@test "features-linux:seccomp-2 each of operators must be recognized" {
	document
	feature '.linux.seccomp.operators[]' >/dev/null
	with_filter '{"syscalls": [$features.linux.seccomp.operators | to_entries[]
		| {"names": [$rare[.key]], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": 1, "valueTwo": 1, "op": .value}]}]}' \
		--argjson rare "$rare"
}

@test "features-linux:seccomp-3 each of archs must be recognized" {
	document
	feature '.linux.seccomp.archs[]' >/dev/null
	# a filter is of one endianness, here the smaller one
	with_filter '{"architectures": ($features.linux.seccomp.archs - ["SCMP_ARCH_MIPS", "SCMP_ARCH_MIPS64",
			"SCMP_ARCH_MIPS64N32", "SCMP_ARCH_PPC", "SCMP_ARCH_PPC64", "SCMP_ARCH_S390", "SCMP_ARCH_S390X",
			"SCMP_ARCH_PARISC", "SCMP_ARCH_PARISC64", "SCMP_ARCH_M68K", "SCMP_ARCH_SHEB"]), "syscalls": [{"names": ["acct"], "action": "SCMP_ACT_ERRNO"}]}'
}

@test "features-linux:seccomp-4 each of knownFlags must be recognized" {
	document
	local flag
	for flag in $(feature '.linux.seccomp.knownFlags[]'); do
		edit '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "flags": [$flag],
			"syscalls": [{"names": ["acct"], "action": "SCMP_ACT_ERRNO"}]}' --arg flag "$flag"
		script_runs 'echo ran' || true
		# one that is known and not supported is refused by its name
		[ "$status" -eq 0 ] || [[ $stderr == *"$flag"* ]] || show
		oci_delete --force 2>/dev/null || true
	done
}

@test "features-linux:seccomp-5 each of supportedFlags must be supported" {
	document
	local flag action
	for flag in $(feature '.linux.seccomp.supportedFlags[]'); do
		# this one is about listeners
		action=SCMP_ACT_ERRNO
		[ "$flag" != SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV ] || action=SCMP_ACT_NOTIFY
		with_filter "{\"flags\": [\"$flag\"], \"syscalls\": [{\"names\": [\"acct\"], \"action\": \"$action\"}]}"
	done
}

@test "features-linux:mountExtensions-1 idmap.enabled must be true if the runtime recognizes mappings of mounts" {
	document
	mkdir "$here/data"
	chmod 0755 "$here/data"
	chown 1000:1000 "$here/data"
	edit '.mounts += [{"destination": "/mnt", "source": $source, "options": ["bind", "idmap"],
		"uidMappings": [{"containerID": 1000, "hostID": 2000, "size": 1}],
		"gidMappings": [{"containerID": 1000, "hostID": 2000, "size": 1}]}]' --arg source "$here/data"
	script 'stat -c %u /mnt'
	run --separate-stderr oci_run
	if [ "$status" -eq 0 ] && [ "$output" = 2000 ]; then
		[ "$(jq .linux.mountExtensions.idmap.enabled <<<"$features")" = true ]
	else
		[ "$(jq .linux.mountExtensions.idmap.enabled <<<"$features")" != true ]
	fi
}
