#!/usr/bin/env python3
"""h2spec, all 146 cases with the strict ones, plain and over TLS, against h2spec.expected.

The file lists expected failures, one per line: `id | title | reason`. A case that is listed and
passes fails the check too.
"""

import os
import pathlib
import subprocess
import xml.etree.ElementTree

import rig

# The version that the Go module proxy serves; with --strict it runs 146 cases.
MODULE = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"
CASES = 146


def program():
    go = rig.tool("go")
    path = rig.CACHE / "bin" / "h2spec"
    if not path.exists():
        environment = os.environ | {"GOBIN": str(path.parent), "GOFLAGS": "-mod=mod"}
        built = subprocess.run([go, "install", MODULE], env=environment, capture_output=True, text=True)
        if built.returncode:
            rig.skip(f"h2spec cannot be built: {built.stderr.strip().splitlines()[-1]}")
    return path


def expected_failures():
    lines = pathlib.Path(__file__).with_name("h2spec.expected").read_text().splitlines()
    listed = [line.split("|") for line in lines if line.strip() and not line.startswith("#")]
    return {(identifier.strip(), title.strip()) for identifier, title, _reason in listed}


def run(check, program, port, *options):
    report = check.directory / "report.xml"
    command = [program, "--strict", "--host", "127.0.0.1", "--port", str(port), "--junit-report", report, *options]
    subprocess.run(command, capture_output=True, timeout=600)
    failed, passed = {}, set()
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        key = (case.get("package"), case.get("classname"))
        problem = next((e for e in case if e.tag in ("failure", "error", "skipped")), None)
        if problem is None:
            passed.add(key)
        else:
            failed[key] = problem.text
    return failed, passed


def main():
    h2spec = program()
    check = rig.Rig()
    # A plain port that speaks both takes a bad preface for a request of HTTP/1, and answers it as one.
    plain, secure = check.gate(rig.origin(), protocols="http2")
    expected = expected_failures()
    for name, port, options in (("plain", plain, ()), ("TLS", secure, ("--tls", "--insecure"))):
        failed, passed = run(check, h2spec, port, *options)
        total = len(failed) + len(passed)
        check.check(f"{name}: {CASES} cases run", total == CASES, f"{total} ran")
        for key, text in failed.items():
            check.check(f"{name}: {key[0]} {key[1]}", key in expected, text)
        for key in passed:
            check.check(f"{name}: {key[0]} {key[1]}", key not in expected, "passes, but is expected to fail")
    check.finish()


main()
