#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times AgentDock beside others. Run by `make bench`; root only.

bench.py [--rounds N] [--quick]      measures, writes build/bench.json, docs/performance.svg and the tables of
                                     docs/performance.md between their markers
bench.py --render                    only the last two, from the build/bench.json that is there
"""
import argparse
import glob
import json
import os
import platform
import re
import shutil
import stat
import statistics
import subprocess
import sys
import time

import oci

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")
WORK = os.path.join(BUILD, "bench")
TREE = os.path.join(WORK, "root")
STATE = os.path.join(WORK, "state")
RESULT = os.path.join(BUILD, "bench.json")
DOC = os.path.join(ROOT, "docs/performance.md")
PLOT = os.path.join(ROOT, "docs/performance.svg")
AGENTDOCK = os.path.join(BUILD, "agentdock")
SPAWN = os.path.join(WORK, "spawn")
NULL = os.path.join(WORK, "null")
# RUN is on a tmpfs, as /run is wherever systemd is
OWN = {"AGENTDOCK_STATE_DIR": STATE, "AGENTDOCK_RUN_DIR": "/dev/shm/agentdock-bench",
       "AGENTDOCK_CGROUP_PARENT": "agentdock-bench", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
ID_BASE, IDS, USER = 1879048192, 65536, 10001
SAME_WALLS = "floor, and a limited disk"
TARGETS = {"floor": ("at most", 1.3), SAME_WALLS: ("at most", 1.3), "crun": ("at most", 0.55), "runc": ("at most", 0.17), "bubblewrap": ("at most", 0.95)}


def say(text):
    print(text, file=sys.stderr, flush=True)


def agentdock(*words, **more):
    return subprocess.run([AGENTDOCK, *words], env=OWN, check=True, text=True, stdout=subprocess.PIPE, **more).stdout


# ---- what is measured ----

def make_tree():
    """A root of busybox; the same for all: imported as an image, and as a plain directory."""
    for path in (TREE, STATE):
        shutil.rmtree(path, ignore_errors=True)
    for name in ("bin", "dev", "etc", "proc", "root", "sys", "tmp", "workspace"):
        os.makedirs(os.path.join(TREE, name))
    shutil.copy("/bin/busybox", os.path.join(TREE, "bin/busybox"))
    for name in ("true", "sh", "sleep", "sha256sum"):
        os.link(os.path.join(TREE, "bin/busybox"), os.path.join(TREE, "bin", name))
    with open(os.path.join(TREE, "etc/passwd"), "w", encoding="ascii") as file:
        file.write(f"root:x:0:0::/root:/bin/sh\nsandbox:x:{USER}:{USER}::/workspace:/bin/sh\n")
    with open(os.path.join(TREE, "etc/group"), "w", encoding="ascii") as file:
        file.write(f"root:x:0:\nsandbox:x:{USER}:\n")
    with open(os.path.join(TREE, "etc/hosts"), "w", encoding="ascii") as file:
        file.write("127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 sandbox\n")
    if not os.path.exists(NULL):
        os.mknod(NULL, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.chmod(NULL, 0o666)
    agentdock("image", "import", TREE, "default")
    agentdock("run", "-q", "--", "/bin/true")


def layer():
    found = re.search(r"^layer +sha256:(\w+)", agentdock("image", "inspect", "default"), re.M).group(1)
    return os.path.join(STATE, "layers/sha256", found, "root")


def oci_config():
    profile = json.load(open(os.path.join(ROOT, "seccomp/profiles/default.json"), encoding="utf-8"))
    here = {"nosuid", "noexec", "nodev"}
    ids = [{"containerID": 0, "hostID": ID_BASE, "size": IDS}]
    none = {name: [] for name in ("bounding", "effective", "permitted", "inheritable", "ambient")}
    return {
        "ociVersion": "1.0.0",
        "process": {"terminal": False, "user": {"uid": USER, "gid": USER}, "args": ["/bin/true"], "cwd": "/workspace",
                    "env": ["PATH=/bin", "HOME=/workspace"], "capabilities": none, "noNewPrivileges": True},
        "root": {"path": TREE, "readonly": False},
        "hostname": "sandbox",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
            {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
             "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
             "options": [*sorted(here), "mode=1777", "size=64m"]},
            {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": sorted(here)},
        ],
        "linux": {
            "uidMappings": ids, "gidMappings": ids,
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup", "user")],
            "resources": {"memory": {"limit": 512 << 20, "swap": 512 << 20}, "pids": {"limit": 256},
                          "cpu": {"quota": 100000, "period": 100000}},
            "seccomp": {"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86_64"],
                        "syscalls": [{"names": profile["allow"], "action": "SCMP_ACT_ALLOW"}]},
            "maskedPaths": ["/proc/" + name for name in (
                "acpi", "asound", "interrupts", "kcore", "keys", "latency_stats", "timer_list", "sched_debug", "scsi")],
            "readonlyPaths": ["/proc/" + name for name in ("bus", "fs", "irq", "sys", "sysrq-trigger")],
        },
    }


def make_bundle(name, more):
    bundle, config = os.path.join(WORK, name), oci_config()
    config["linux"].update(more)
    os.makedirs(bundle, exist_ok=True)
    with open(os.path.join(bundle, "config.json"), "w", encoding="ascii") as file:
        json.dump(config, file)
    return bundle


def filter_program():
    """The default filter as bubblewrap takes it."""
    text = open(os.path.join(BUILD, "gen/seccomp_default.inc"), encoding="ascii").read()
    text = text[:text.index("};")]
    path = os.path.join(WORK, "filter.bpf")
    with open(path, "wb") as file:
        for code, yes, no, k in re.findall(r"\{ (\w+), (\w+), (\w+), (\w+) \}", text):
            file.write(int(code, 0).to_bytes(2, "little") + bytes([int(yes, 0), int(no, 0)]) +
                       int(k, 0).to_bytes(4, "little"))
    return path


def contenders():
    lower, floor = layer(), os.path.join(WORK, "floor")
    [template] = glob.glob(os.path.join(STATE, "disks/ext4-*.img"))
    run = [AGENTDOCK, "run", "-q"]
    found = [("agentdock", "host", [*run, "--", "/bin/true"]),
             ("agentdock, disk in memory", "host", [*run, "--disk-backing", "tmpfs", "--", "/bin/true"]),
             ("floor", "host", [floor, lower, "/bin/true"]),
             ("floor, /proc covered", "host", [floor, "-m", lower, "/bin/true"]),
             (SAME_WALLS, "host", [floor, "-m", "-d", template, lower, "/bin/true"])]
    bundle = make_bundle("oci", {"cgroupsPath": "/bench-oci"})
    for name in ("crun", "runc"):
        path = shutil.which(name)
        if path:
            root = os.path.join(WORK, name)
            found.append((name, "v1", [path, "--root", root, "run", "--bundle", bundle, "bench-" + name]))
    path = shutil.which("bwrap")
    if path:
        found.append(("bubblewrap", "host", [
            path, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--hostname", "sandbox",
            "--uid", str(USER), "--gid", str(USER), "--cap-drop", "ALL", "--ro-bind", TREE, "/", "--proc", "/proc",
            "--dev", "/dev", "--mqueue", "/dev/mqueue", "--tmpfs", "/tmp", "--tmpfs", "/workspace", "--chdir",
            "/workspace", "--clearenv", "--setenv", "PATH", "/bin", "--seccomp", "9", "/bin/true"]))
    return found


# ---- measuring ----

def tell_errors(file):
    """What programs said on standard error: each message once, numbers aside."""
    file.seek(0)
    counts = {}
    for line in file:
        text = re.sub(r"\d+", "N", line.strip())
        counts[text] = counts.get(text, 0) + 1
    for text, count in counts.items():
        say(f"bench: {count} times: {text}")


def spawn(commands, *options):
    """[(name, microseconds, KiB, status)]"""
    path = os.path.join(WORK, "commands")
    with open(path, "w", encoding="utf-8") as file:
        for name, place, words in commands:
            file.write("\t".join([name, place, *words]) + "\n")
    with open(os.path.join(WORK, "errors"), "w+", encoding="utf-8") as errors:
        done = subprocess.run([SPAWN, "-n", NULL, *options, path], env=OWN, text=True, check=True, stdout=subprocess.PIPE,
                              stderr=errors)
        tell_errors(errors)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [(name, int(us), int(kib), int(status)) for name, us, kib, status in rows]


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def summary(rows):
    times = [us for _, us, _, status in rows if status == 0] or [0]
    return {"runs": len(rows), "p50_us": int(statistics.median(times)), "p95_us": percentile(times, 0.95),
            "min_us": min(times), "peak_kib": max(kib for _, _, kib, _ in rows),
            "failed": sum(status != 0 for *_, status in rows)}


def works(command, program):
    try:
        rows = spawn([command], "-r", "1", "-w", "0", "-f", program)
    except subprocess.CalledProcessError:
        return False
    if rows[0][3] == 0:
        return True
    say(f"bench: {command[0]} does not run here (exit status {rows[0][3]}) and is left out")
    return False


def measure_launch(rounds):
    program = filter_program()
    commands = [command for command in contenders() if works(command, program)]
    say(f"bench: {rounds} rounds of {', '.join(name for name, *_ in commands)}")
    rows = spawn(commands, "-r", str(rounds), "-w", "10", "-f", program)
    result = []
    for name, *_ in commands:
        result.append({"name": name, **summary([row for row in rows if row[0] == name])})
    for row in result:
        row["ours_to_it"] = round(result[0]["p50_us"] / row["p50_us"], 3)
    return result


def measure_large_caller(rounds):
    """From a process of 1 GiB in proportion to a small one, in turn."""
    ours = contenders()[:1]
    small, large = [], []
    for _ in range(4):
        small += spawn(ours, "-r", str(rounds // 4), "-w", "2")
        large += spawn(ours, "-r", str(rounds // 4), "-w", "2", "-b", "1024")
    small, large = summary(small), summary(large)
    return {"small_p50_us": small["p50_us"], "large_p50_us": large["p50_us"],
            "ratio": round(large["p50_us"] / small["p50_us"], 3)}


def measure_library(rounds, *how):
    """The library call in a process that is there already."""
    words = [os.path.join(WORK, "library"), STATE, OWN["AGENTDOCK_RUN_DIR"], OWN["AGENTDOCK_CGROUP_PARENT"]]
    done = subprocess.run([*words, str(rounds + 10), *how], env=OWN, check=True, text=True, stdout=subprocess.PIPE)
    times = [int(line) for line in done.stdout.split()][10:]
    return {"runs": len(times), "p50_us": int(statistics.median(times)), "p95_us": percentile(times, 0.95)}


def measure_at_once(counts):
    result = []
    for count in counts:
        total = max(400, 2 * count)
        say(f"bench: {total} sandboxes, {count} at once")
        rows = spawn(contenders()[:1], "-r", str(total), "-j", str(count))
        wall = rows.pop()[1]
        row = summary(rows)
        well = total - row["failed"]
        result.append({"at_once": count, **row, "rate_per_s": round(well * 1e6 / wall, 1)})
    return result


def available_kib():
    text = open("/proc/meminfo", encoding="ascii").read()
    return int(re.search(r"MemAvailable: +(\d+)", text).group(1))


def pss_kib(pid):
    """What a process has of its own and its share of the rest; None: it is gone."""
    try:
        text = open(f"/proc/{pid}/smaps_rollup", encoding="ascii").read()
        return int(re.search(r"^Pss: +(\d+)", text, re.M).group(1))
    except (OSError, AttributeError):
        return None


def settle():
    """Until the kernel has given back what earlier sandboxes had, or for twenty seconds."""
    last, rounds = 0, 0
    while abs(available_kib() - last) > 256 and rounds < 20:
        last, rounds = available_kib(), rounds + 1
        time.sleep(1)


def measure_held(count):
    """COUNT sandboxes that sleep: what each takes of the host's memory while it runs."""
    say(f"bench: {count} sandboxes that sleep")
    groups = "/sys/fs/cgroup/unified/agentdock-bench"
    if not os.path.isdir("/sys/fs/cgroup/unified"):
        groups = "/sys/fs/cgroup/agentdock-bench"
    seconds = max(5, count // 8)
    words = [AGENTDOCK, "run", "-q", "--timeout", "0", "--", "/bin/sleep", str(seconds)]
    settle()
    before, most, least, launchers = available_kib(), 0, 0, []
    errors = open(os.path.join(WORK, "errors"), "w+", encoding="utf-8")
    held = [subprocess.Popen(words, env=OWN, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
            for _ in range(count)]
    while any(process.poll() is None for process in held):
        now = sum(entry.is_dir() for entry in os.scandir(groups)) if os.path.isdir(groups) else 0
        if now >= most:
            most, least = now, available_kib()
            launchers = [size for size in (pss_kib(process.pid) for process in held) if size]
        time.sleep(0.2)
    tell_errors(errors)
    errors.close()
    settle()
    # what else the host does meanwhile is in both
    before = (before + available_kib()) / 2
    return {"count": count, "together": most, "failed": sum(process.returncode != 0 for process in held),
            "kib_each": round((before - least) / max(most, 1)),
            "launcher_pss_kib": round(statistics.median(launchers or [0]))}


def measure_steps(rounds):
    """The medians of each row of the score, and of each phase."""
    reports = [json.loads(agentdock("run", "--json", "--", "/bin/true")) for _ in range(rounds)]
    rows = []
    for i, row in enumerate(reports[0]["score"]):
        outside = statistics.median(report["score"][i]["outside_us"] for report in reports)
        inside = statistics.median(report["score"][i]["inside_us"] for report in reports)
        rows.append({"name": row["name"], "outside_us": int(outside), "inside_us": int(inside)})
    phases = {name: round(statistics.median(report["phases_ms"][name] for report in reports), 3)
              for name in reports[0]["phases_ms"]}
    return {"rows": rows, "phases_ms": phases}


def make_workspace(path, files=20000):
    shutil.rmtree(path, ignore_errors=True)
    for i in range(files):
        if i % 100 == 0:
            directory = os.path.join(path, f"{i // 2000:02}", f"{i // 100 % 20:02}")
            os.makedirs(directory)
        with open(os.path.join(directory, f"file-{i}"), "wb") as file:
            file.write(b"%d\n" % i * (i % 500))


def measure_unpack(rounds):
    """Our `unpack workspace` beside bsdtar into a new ext4 on a loop device, in a mount namespace of its own."""
    if not shutil.which("bsdtar"):
        say("bench: bsdtar (libarchive-tools) is not there; no comparison of unpacking")
        return None
    say(f"bench: a workspace of 20000 files, {rounds} times")
    tree, archive = os.path.join(WORK, "workspace"), os.path.join(WORK, "workspace.tar")
    image, mount = os.path.join(WORK, "ext4.img"), os.path.join(WORK, "mnt")
    make_workspace(tree)
    subprocess.run(["tar", "-cf", archive, "-C", tree, "."], check=True)
    os.makedirs(mount, exist_ok=True)
    script = ('mount -o loop,noatime,nobarrier,noauto_da_alloc "$1" "$2"; begin=$(date +%s%N); bsdtar -xf "$3" -C "$2"; '
              'end=$(date +%s%N); umount "$2"; echo $((end - begin))')
    copy = ('mount -o loop,noatime,nobarrier,noauto_da_alloc "$1" "$2"; begin=$(date +%s%N); '
            'bsdtar -cf - -C "$3" . | bsdtar -xf - -C "$2"; end=$(date +%s%N); umount "$2"; echo $((end - begin))')
    ours, theirs, piped = [], [], []
    for _ in range(rounds):
        report = json.loads(agentdock("run", "--json", "--workspace", tree, "--", "/bin/true"))
        ours.append(report["phases_ms"]["unpack"])
        for what, source, times in ((script, archive, theirs), (copy, tree, piped)):
            with open(image, "wb") as file:
                file.truncate(1 << 30)
            subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-N", "200000", "-E",
                            "lazy_itable_init=1,nodiscard", image], check=True)
            done = subprocess.run(["unshare", "-m", "sh", "-ec", what, "sh", image, mount, source], check=True,
                                  text=True, stdout=subprocess.PIPE)
            times.append(int(done.stdout) / 1e6)
    os.unlink(image)
    return {"files": 20000, "runs": rounds, "ours_ms": round(statistics.median(ours), 1),
            "bsdtar_ms": round(statistics.median(theirs), 1),
            "bsdtar_pack_and_unpack_ms": round(statistics.median(piped), 1),
            "ratio": round(statistics.median(ours) / statistics.median(theirs), 3)}


def version(*words):
    try:
        return subprocess.run(words, text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        return None


def machine():
    info = open("/proc/cpuinfo", encoding="utf-8").read()
    return {"cpu": re.search(r"model name\s*: (.*)", info).group(1), "cores": os.cpu_count(),
            "kernel": platform.release(), "date": time.strftime("%Y-%m-%d"),
            "load_before": round(os.getloadavg()[0], 2),
            "versions": [version("crun", "--version"), version("runc", "--version"), version("bwrap", "--version")]}


# ---- telling ----

def ms(us):
    return f"{us / 1000:.2f} ms"


def launch_table(result):
    yield "| | p50 | p95 | fastest | peak memory | AgentDock's p50 to it | target |"
    yield "|---|---|---|---|---|---|---|"
    for row in result["launch"]:
        words, limit = TARGETS.get(row["name"], ("", None))
        target = "" if limit is None else f"{words} {limit}: {'met' if row['ours_to_it'] <= limit else 'missed'}"
        failed = f" ({row['failed']} of {row['runs']} failed)" if row["failed"] else ""
        yield (f"| {row['name']}{failed} | {ms(row['p50_us'])} | {ms(row['p95_us'])} | {ms(row['min_us'])} | "
               f"{row['peak_kib'] / 1024:.1f} MiB | {row['ours_to_it']:.2f} | {target} |")


def other_tables(result):
    large = result["large_caller"]
    p50 = {row["name"]: row["p50_us"] for row in result["launch"]}
    for name, what, target in (("library", "The library call in a process that is there already", 0.8),
                               ("prepared", "The same in a sandbox that was prepared ahead", 0.5)):
        line = f"{what}: p50 {ms(result[name]['p50_us'])}, p95 {ms(result[name]['p95_us'])}"
        if "floor" in p50 and SAME_WALLS in p50:
            line += (f"; {result[name]['p50_us'] / p50['floor']:.2f} of the floor program's whole time, "
                     f"{result[name]['p50_us'] / p50[SAME_WALLS]:.2f} of that with our walls (target: at most {target})")
        yield line + "."
        yield ""
    yield f"From a process of 1 GiB: {ms(large['large_p50_us'])}, from a small one {ms(large['small_p50_us'])}; " \
          f"ratio {large['ratio']:.2f} (target: at most 1.1)."
    yield ""
    yield "| at once | runs | ended well, a second | p50 | p95 | failed |"
    yield "|---|---|---|---|---|---|"
    for row in result["at_once"]:
        yield (f"| {row['at_once']} | {row['runs']} | {row['rate_per_s']} | {ms(row['p50_us'])} | {ms(row['p95_us'])} | "
               f"{row['failed']} |")
    rates = {row["at_once"]: row["rate_per_s"] for row in result["at_once"]}
    if 100 in rates and 4 in rates:
        yield ""
        yield f"Rate at 100 at once to the rate at 4 at once: {rates[100] / rates[4]:.2f} (target: at least 0.9)."
    held = result.get("held")
    if held:
        yield ""
        each = f"{held['kib_each']} KiB of the host's memory each" if held["kib_each"] > 0 else \
            "the memory of each could not be told from what else the host did"
        yield (f"{held['count']} sandboxes that sleep, {held['together']} of them at the same time: {each}; "
               f"the launcher's own proportional share is {held['launcher_pss_kib']} KiB; {held['failed']} failed "
               f"(target: under 1024 KiB).")
    unpack = result.get("unpack")
    if unpack:
        yield ""
        yield (f"A workspace of {unpack['files']} files: {unpack['ours_ms']} ms from directory to sandbox; "
               f"`bsdtar -xf` of a ready archive {unpack['bsdtar_ms']} ms, ratio {unpack['ratio']:.2f} (target: at "
               f"most 1.1); `bsdtar -c` into `bsdtar -x`, which is the same work as ours, "
               f"{unpack['bsdtar_pack_and_unpack_ms']} ms.")


def machine_line(result):
    m = result["machine"]
    versions = "; ".join(text for text in m["versions"] if text)
    return (f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel']}, {m['date']}; load average before: "
            f"{m['load_before']}. {versions}. {result['launch'][0]['runs']} runs of each.")


def steps_table(result):
    yield "| row | outside | inside |"
    yield "|---|---|---|"
    rows = result["steps"]["rows"]
    for row in rows:
        yield f"| {row['name']} | {row['outside_us'] or ''} | {row['inside_us'] or ''} |"
    yield f"| all | {sum(row['outside_us'] for row in rows)} | {sum(row['inside_us'] for row in rows)} |"
    yield ""
    phases = ", ".join(f"{name} {value}" for name, value in result["steps"]["phases_ms"].items() if value)
    yield f"Phases in ms: {phases}."


def replace(text, name, lines):
    begin, end = f"<!-- {name}: written by make bench -->", f"<!-- end of {name} -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if not rest or end not in rest:
        sys.exit(f"docs/performance.md lacks the markers of {name}")
    return f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}"


def render(result):
    for line in [*launch_table(result), "", *oci.table(result["oci"]), "", *other_tables(result)]:
        print(line)
    text = open(DOC, encoding="utf-8").read()
    text = replace(text, "launches", [machine_line(result), "", *launch_table(result)])
    text = replace(text, "containers", oci.table(result["oci"]))
    text = replace(text, "others", other_tables(result))
    text = replace(text, "steps", steps_table(result))
    with open(DOC, "w", encoding="utf-8") as file:
        file.write(text)
    if not shutil.which("gnuplot"):
        say("bench: gnuplot is not there; no plot")
        return
    data = os.path.join(WORK, "plot.dat")
    with open(data, "w", encoding="utf-8") as file:
        for row in result["launch"]:
            file.write(f"\"{row['name']}\" {row['p50_us'] / 1000} {row['p95_us'] / 1000}\n")
    subprocess.run(["gnuplot", "-e", f"data='{data}'; out='{PLOT}'", os.path.join(ROOT, "tests/bench/plot.gp")],
                   check=True)


def measure(options):
    if os.geteuid() != 0:
        sys.exit("bench: root only")
    load = machine()
    make_tree()
    result = {"machine": load, "launch": measure_launch(options.rounds)}
    result["oci"] = oci.measure(BUILD, WORK, make_bundle("oci-any", {}), options.rounds, spawn, summary)
    result["library"] = measure_library(options.rounds)
    result["prepared"] = measure_library(options.rounds, "prepared")
    result["large_caller"] = measure_large_caller(20 if options.quick else 100)
    result["steps"] = measure_steps(20 if options.quick else 100)
    # before a thousand at once, whose memory the kernel gives back for a while
    result["held"] = measure_held(20 if options.quick else 100)
    result["at_once"] = measure_at_once((1, 4, 10, 100) if options.quick else (1, 4, 10, 100, 1000))
    result["unpack"] = measure_unpack(3 if options.quick else 7)
    with open(RESULT, "w", encoding="ascii") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    return result


def main():
    parser = argparse.ArgumentParser(description="Times AgentDock beside others.")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="fewer runs of all but the launches, no 1000 at once")
    parser.add_argument("--render", action="store_true", help="only the document and the plot, from build/bench.json")
    options = parser.parse_args()
    if options.render:
        result = json.load(open(RESULT, encoding="ascii"))
    else:
        result = measure(options)
    render(result)


if __name__ == "__main__":
    main()
