# SPDX-License-Identifier: Apache-2.0
"""The OCI path: agentdock-runtime beside other OCI runtimes, one bundle, in turn. Used by bench.py."""
import os
import shutil

TARGETS = {"run": 0.6, "steps": 0.6, "at_once": 0.7}
TITLES = {"run": "`run`", "steps": "`create`, `start`, `delete`", "at_once": "100 at once, all of them"}


def runtimes(build):
    found = {"agentdock-runtime": os.path.join(build, "agentdock-runtime")}
    for name in ("crun", "runc"):
        if shutil.which(name):
            found[name] = shutil.which(name)
    return found


def command(work, bundle, name, path, how):
    """As spawn takes it. All of them see the same hierarchies, those of v1."""
    return (name, "v1", [os.path.join(work, "verbs"), how, path, os.path.join(work, "oci-" + name), bundle])


def measure(build, work, bundle, rounds, spawn, summary):
    """{"run" | "steps" | "at_once": {name: summary}}; spawn and summary are bench.py's."""
    result = {}
    for how in ("run", "steps"):
        commands = [command(work, bundle, name, path, how) for name, path in runtimes(build).items()]
        rows = spawn(commands, "-r", str(rounds), "-w", "5")
        result[how] = {name: summary([row for row in rows if row[0] == name]) for name, *_ in commands}
    result["at_once"] = {}
    for name, path in runtimes(build).items():
        rows = spawn([command(work, bundle, name, path, "run")], "-r", "100", "-j", "100")
        wall = rows.pop()[1]
        result["at_once"][name] = {**summary(rows), "p50_us": wall}
    return result


def table(result):
    yield "| | " + " | ".join(result["run"]) + " | peak memory | to crun | target |"
    yield "|---|" + "---|" * (len(result["run"]) + 3)
    for how, rows in result.items():
        cells = []
        for row in rows.values():
            failed = f" ({row['failed']} of {row['runs']} failed)" if row["failed"] else ""
            cells.append(f"{row['p50_us'] / 1000:.1f} ms{failed}")
        memory = ", ".join(f"{row['peak_kib'] / 1024:.1f}" for row in rows.values()) + " MiB"
        ratio, target = "", f"at most {TARGETS[how]}"
        if "crun" in rows:
            to = rows["agentdock-runtime"]["p50_us"] / rows["crun"]["p50_us"]
            ratio, target = f"{to:.2f}", f"{target}: {'met' if to <= TARGETS[how] else 'missed'}"
        yield f"| {TITLES[how]} | " + " | ".join(cells) + f" | {memory} | {ratio} | {target} |"
