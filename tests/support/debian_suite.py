# SPDX-License-Identifier: Apache-2.0
"""Programs of other releases of Debian, for proofs with runtimes newer or older than this machine's: packages are fetched,
checked against the archive's signature, and unpacked into a root of their own; nothing is installed. What runs in that root
has this machine's /proc, /tmp and the build, at the same paths. It is an ordinary process of this machine to all others.

A root is kept in $QUT_ROOTS (~/.cache/qut-roots) and made anew when the suite has other versions.
"""
import fnmatch
import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

ARCHIVE = "http://deb.debian.org/debian/"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SECONDS = 120
LIBRARIES = ["libc6", "libgcc-s1", "libstdc++6", "zlib1g"]  # what every program needs


class Absent(Exception):
    """It cannot be had here: no network, no rights, no such package."""


def _fetch(path):
    try:
        with urllib.request.urlopen(ARCHIVE + path, timeout=SECONDS) as answer:
            return answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise Absent(f"{ARCHIVE}{path}: {error}") from error


def _signed_index(suite, architecture):
    """{package: (file, its SHA-256, its version)}"""
    with tempfile.TemporaryDirectory() as top:
        release = os.path.join(top, "InRelease")
        with open(release, "wb") as file:
            file.write(_fetch(f"dists/{suite}/InRelease"))
        try:
            said = subprocess.run(["gpgv", "--keyring", KEYRING, "--output", "-", release], capture_output=True, check=False)
        except FileNotFoundError as error:
            raise Absent("gpgv is not here") from error
    if said.returncode != 0:
        raise Absent(f"{suite}: the archive's signature is not good: {said.stderr.decode()[-200:]}")
    sums = said.stdout.decode().partition("\nSHA256:")[2]
    path = f"main/binary-{architecture}/Packages.xz"
    found = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {re.escape(path)}$", sums, re.MULTILINE)
    packed = _fetch(f"dists/{suite}/{path}")
    if not found or hashlib.sha256(packed).hexdigest() != found.group(1):
        raise Absent(f"{suite}: {path} is not what the archive has signed")
    index = {}
    for block in lzma.decompress(packed).decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if re.match(r"[A-Z][\w-]*: ", line))
        if "Package" in fields:
            index[fields["Package"]] = (fields["Filename"], fields["SHA256"], fields["Version"])
    return index


def root_of(suite, patterns, architecture="amd64"):
    """A root with the packages of a suite that fit (shell patterns), and the libraries that every program needs: where it
    lies, and {package: version}."""
    index = _signed_index(suite, architecture)
    wanted = {name: entry for name, entry in index.items()
              if name in LIBRARIES or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
    top = os.environ.get("QUT_ROOTS") or os.path.expanduser("~/.cache/qut-roots")
    key = hashlib.sha256(json.dumps(sorted(wanted.items())).encode()).hexdigest()[:16]
    root = os.path.join(top, f"{suite}-{architecture}-{key}")
    versions = {name: version for name, (_, _, version) in wanted.items()}
    if os.path.isdir(root):
        return root, versions
    making = f"{root}.{os.getpid()}"
    try:
        for path, digest, _ in wanted.values():
            packed = _fetch(path)
            if hashlib.sha256(packed).hexdigest() != digest:
                raise Absent(f"{path} is not what the archive has signed")
            os.makedirs(making, exist_ok=True)
            with tempfile.NamedTemporaryFile(suffix=".deb") as file:
                file.write(packed)
                file.flush()
                subprocess.run(["dpkg-deb", "-x", file.name, making], check=True)
        for name in ("proc", "tmp", "dev"):
            os.makedirs(os.path.join(making, name), exist_ok=True)
        for name in ("bin", "sbin", "lib", "lib64"):  # packages have them in /usr, as links that base-files makes
            os.makedirs(os.path.join(making, "usr", name), exist_ok=True)
            if not os.path.lexists(os.path.join(making, name)):
                os.symlink(f"usr/{name}", os.path.join(making, name))
        os.rename(making, root)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return root, versions


def runs_in(root, shared):
    """What stands before a command that runs in a root; `shared`: a folder that is there at the same path. Absent: this
    user may not."""
    place = os.path.join(root, shared.lstrip("/"))
    os.makedirs(place, exist_ok=True)
    script = ('for place in /proc /tmp /dev "$2"; do mount --rbind "$place" "$1$place" || exit 1; done; root=$1; shift 2; '
              'exec chroot "$root" "$@"')
    prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", root, shared]
    tried = subprocess.run(prefix[:-2] + [root, shared, "/lib64/ld-linux-x86-64.so.2", "--version"], capture_output=True,
                           text=True, check=False)
    if tried.returncode != 0:
        raise Absent(f"nothing can run in {root}: {tried.stderr.strip()[-200:]}")
    return prefix
