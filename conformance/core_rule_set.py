"""Where the Core Rule Set comes from: version 4 as a Go module, with its tests; version 3.3 as Debian packs it."""

import functools
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

import rig

HERE = pathlib.Path(__file__).parent
# Rules and tests.
MODULE = "github.com/corazawaf/coraza-coreruleset/v4@v4.25.0"
# What crs/go.mod asks for.
TOOLCHAIN = "go1.25.0"


def folder():
    """Version 4: a folder with `rules` and `tests`."""
    if place := os.environ.get("TIDEGATE_CRS"):
        return pathlib.Path(place)
    return pathlib.Path(json.loads(go("mod", "download", "-json", MODULE))["Dir"])


def debian(directory):
    """Version 3.3: the root that Debian's package is installed under, or unpacked to in `directory`."""
    if pathlib.Path("/usr/share/modsecurity-crs/rules").is_dir():
        return pathlib.Path("/")
    fetch = [rig.tool("apt-get"), "-q", "-o", "APT::Sandbox::User=root", "download", "modsecurity-crs"]
    if subprocess.run(fetch, cwd=directory, capture_output=True, timeout=120).returncode:
        return None
    root = directory / "debian"
    for package in directory.glob("modsecurity-crs_*.deb"):
        subprocess.run([rig.tool("dpkg-deb"), "-x", package, root], check=True, capture_output=True)
    return root


def go(*arguments, program=None, folder=HERE / "crs"):
    """What a go command says, or the end of the check."""
    command = [program or toolchain(), *arguments]
    environment = os.environ | {"GOFLAGS": "-mod=readonly"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode:
        rig.skip(f"`go {arguments[0]}` fails: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return done.stdout


@functools.cache
def toolchain():
    """A go command that can build the driver. From 1.21 on one fetches what is newer than itself; for an
    older one, such as Debian's, this does it the same way: the toolchain is a module."""
    installed = rig.tool("go")
    version = re.search(r"go1\.(\d+)", subprocess.run([installed, "version"], capture_output=True, text=True).stdout)
    if version and int(version[1]) >= 21:
        return installed
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    module = f"golang.org/toolchain@v0.0.1-{TOOLCHAIN}.linux-{machine}"
    newer = rig.CACHE / TOOLCHAIN
    if not newer.exists():
        rig.CACHE.mkdir(parents=True, exist_ok=True)
        found = json.loads(go("mod", "download", "-json", module, program=installed, folder=rig.CACHE))["Dir"]
        made = newer.with_suffix(".new")
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(found, made)
        # Modules hold no programs; these are to be some.
        for file in [*made.glob("bin/*"), *made.glob("pkg/tool/*/*")]:
            file.chmod(0o755)
        made.rename(newer)
    return newer / "bin" / "go"
