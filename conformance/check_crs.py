#!/usr/bin/env python3
"""The OWASP Core Rule Set's regression tests, all paranoia levels, through the running gate: go-ftw
sends them, albedo is the server behind, and what matched is read from the gate's log.

crs.expected lists expected failures, one per line: `test | reason`. A test that is listed and passes
fails the check too. No test is overridden and none is ignored. `check_crs.py PATTERN` runs those whose
name matches.
"""

import json
import pathlib
import subprocess
import sys

import core_rule_set
import rig

HERE = pathlib.Path(__file__).parent
TESTS = 4674
# What the suite asks of the rule set: limits that its tests reach, and a line for each marker.
SETUP = """
SecRule REQUEST_HEADERS:X-CRS-Test "@rx ^.*$" "id:999999,phase:1,pass,log,msg:'X-CRS-Test %{MATCHED_VAR}',\\
    ctl:ruleRemoveById=1-999999"
SecAction "id:900005,phase:1,nolog,pass,ctl:ruleRemoveById=910000,setvar:tx.crs_validate_utf8_encoding=1,\\
    setvar:tx.arg_name_length=100,setvar:tx.arg_length=400,setvar:tx.total_arg_length=64000,\\
    setvar:tx.max_num_args=255,setvar:tx.max_file_size=64100,setvar:tx.combined_file_sizes=65535"
"""

CONFIGURATION = """
[process]
workers = 1

[admin]
listen = "off"

[[listen]]
address = "127.0.0.1:{port}"

[waf]
crs = "{crs}"
mode = "detect"
paranoia = 4
rules_before = ["{directory}/setup.conf"]

[[log]]
name = "waf"
path = "{directory}/waf.log"
format = "waf"
flush = "request"

[group.albedo]
servers = ["127.0.0.1:{albedo}"]

[[site]]
host = "*"
  [[site.route]]
  path = "/"
  group = "albedo"
"""


def driver():
    program = rig.CACHE / "bin" / "crs"
    core_rule_set.go("build", "-o", program, ".")
    return program


def expected_failures():
    lines = (HERE / "crs.expected").read_text().splitlines()
    return {line.split("|")[0].strip() for line in lines if line.strip() and not line.startswith("#")}


def run(check, command, pattern):
    command = [str(part) for part in command] + (["-include", pattern] if pattern else [])
    ran = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if ran.returncode:
        check.check("go-ftw runs to its end", False, ran.stderr)
        check.finish()
    return json.loads(ran.stdout)


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else None
    program, crs = driver(), core_rule_set.folder()
    check = rig.Rig()
    port, albedo = rig.free_port(), rig.free_port()
    (check.directory / "setup.conf").write_text(SETUP)
    file = check.directory / "tidegate.toml"
    file.write_text(CONFIGURATION.format(port=port, albedo=albedo, crs=crs, directory=check.directory))
    check.start([program, "albedo", albedo], "albedo", albedo)
    check.start([check.binary, "serve", file], "tidegate", port)
    command = [program, "test", "-tests", crs / "tests", "-log", check.directory / "waf.log", "-port", port]
    report = run(check, command, pattern)
    # go-ftw reads the log while the gate writes it, and may take half a line for a marker: what fails
    # has to fail alone, too.
    again = report["failed"]
    if again:
        second = run(check, command, f"^({'|'.join(again)})$")
        report["success"] += second["success"]
        report["failed"] = second["failed"]
        report["triggered-rules"] |= second["triggered-rules"]
    expected = expected_failures()
    for name in report["failed"]:
        matched = sorted({rule for stage in report["triggered-rules"].get(name) or [] for rule in stage or []})
        check.check(f"test {name}", name in expected, f"matched: {matched}")
    for name in report["success"]:
        check.check(f"test {name}", name not in expected, "passes, but is expected to fail")
    if not pattern:
        total = len(report["success"]) + len(report["failed"])
        check.check(f"{TESTS} tests run", total == TESTS, f"{total} ran")
    forced = report["ignored"] + report["forced-pass"] + report["forced-fail"]
    check.check("no test is overridden", not forced, forced)
    check.finish()


main()
