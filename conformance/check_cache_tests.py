#!/usr/bin/env python3
"""The public suite http-tests/cache-tests through the gate, against cache-tests.expected.

The suite is a Node program with a client and an origin of its own; its own dependencies between tests
count, as on its site. Tests for browsers are left out, and so are those that only tell how a cache
behaves (`check`). The file lists expected failures, one per line: `id | reason`. A test that is listed
and passes fails the check too.
"""

import json
import os
import pathlib
import subprocess

import rig

REPOSITORY = "https://github.com/http-tests/cache-tests"
COMMIT = "b55b8bda3dbb8c927c04e85bd8d496a8caa3e4ba"
# The suite's HTTP client.
UNDICI = "undici@7"
# What is left without the tests for browsers.
REQUIRED, OPTIMAL = 160, 105
HERE = pathlib.Path(__file__).parent


def run(*command, **options):
    """Runs a step that gets the suite, or skips the check."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, **options)
    except (subprocess.SubprocessError, OSError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        rig.skip(f"cache-tests cannot be had: {said[-1] if said else error}")


def suite():
    """The folder of the suite, with the one package that it needs beside it."""
    if place := os.environ.get("TIDEGATE_CACHE_TESTS"):
        return pathlib.Path(place)
    folder = rig.CACHE / f"cache-tests-{COMMIT[:12]}"
    if not (folder / "package.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git = rig.tool("git")
        run(git, "init", "-q", cwd=folder)
        run(git, "fetch", "-q", "--depth", "1", REPOSITORY, COMMIT, cwd=folder)
        run(git, "checkout", "-q", "FETCH_HEAD", cwd=folder)
    if not (rig.CACHE / "node_modules" / "undici").exists():
        npm = rig.tool("npm")
        run(npm, "install", "--silent", "--no-save", "--ignore-scripts", "--prefix", rig.CACHE, UNDICI)
    return folder


def start(check, folder, node):
    """The suite's origin and the gate in front of it; returns the gate's port."""
    origin, port = rig.free_port(), rig.free_port()
    os.environ |= {
        "npm_config_protocol": "http",
        "npm_config_port": str(origin),
        "npm_config_pidfile": str(check.directory / "origin.pid"),
    }
    file = check.directory / "tidegate.toml"
    # The suite wants cookies stored, as a cache may.
    file.write_text(f"""
[process]
workers = 1

[admin]
listen = "off"

[cache]
mode = "on"
set_cookie = "store"

[[listen]]
address = "127.0.0.1:{port}"

[[site]]
host = "*"
upstream = "127.0.0.1:{origin}"
""")
    check.start([node, folder / "test-engine/server/server.mjs"], "origin", origin)
    check.start([check.binary, "serve", file], "tidegate", port)
    return port


def verdicts(check, folder, node, port):
    """What the suite makes of the gate: a list of tests with their kind and result."""
    environment = os.environ | {
        "npm_config_base": f"http://127.0.0.1:{port}",
        "npm_package_config_id": "",
        "npm_config_id": "",
    }
    results = check.directory / "results.json"
    with results.open("wb") as output:
        client = [node, "--no-warnings", folder / "test-engine/cli.mjs"]
        subprocess.run(client, env=environment, stdout=output, stderr=subprocess.DEVNULL, timeout=600)
    judge = [node, HERE / "cache_tests.mjs", folder, results]
    judged = subprocess.run(judge, capture_output=True, text=True, timeout=60)
    if judged.returncode:
        check.check("the suite ends with results", False, judged.stderr)
        check.finish()
    return json.loads(judged.stdout)


def expected_failures():
    lines = (HERE / "cache-tests.expected").read_text().splitlines()
    return {line.split("|")[0].strip() for line in lines if line.strip() and not line.startswith("#")}


def main():
    node = rig.tool("node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < 18:
        rig.skip(f"node is {version}, and the suite needs 18")
    folder = suite()
    check = rig.Rig()
    port = start(check, folder, node)
    expected = expected_failures()
    counts = {"required": [0, 0], "optimal": [0, 0]}
    for test in verdicts(check, folder, node, port):
        passes = test["result"] == "pass"
        count = counts[test["kind"]]
        count[0] += passes
        count[1] += 1
        what = "passes, but is expected to fail" if passes else f"{test['result']}: {test['detail']}"
        check.check(f"{test['kind']} {test['id']}", passes != (test["id"] in expected), what)
        expected.discard(test["id"])
    check.check("every test that is expected to fail is there", not expected, expected)
    for kind, total in (("required", REQUIRED), ("optimal", OPTIMAL)):
        passed, seen = counts[kind]
        check.check(f"{total} {kind} tests", seen == total, f"{seen} ran")
        print(f"{kind}: {passed} of {seen}")
    check.finish()


main()
