"""Packs the wheel: the Python package, and the binary among its scripts. Needs nothing but Python.

PROOFHOUSE_BINARY names a binary to pack. Without it, Cargo builds one with the profile PROOFHOUSE_PROFILE (`dist` unless it is
set). The wheel says which glibc the binary needs (manylinux), from the symbols in it, or for which Macs it is, from its header. A binary
that needs libraries which not every Linux has is refused.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import stat
import struct
import subprocess
import sys
import sysconfig
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent
# The same for everybody, so that the same content makes the same wheel.
TIME = (2020, 1, 1, 0, 0, 0)


# Libraries that every manylinux system has, and that a Rust program may need.
EVERYWHERE = re.compile(rb"(ld-linux[\w-]*|libc|libdl|libgcc_s|libm|libpthread|librt)\.so\.\d+")
# How programs for macOS name their processor, and the oldest macOS that Rust builds for there.
MACS = {0x01000007: "macosx_10_12_x86_64", 0x0100000C: "macosx_11_0_arm64"}


def version() -> str:
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def repository() -> str:
    """The one setting for the repository's address; empty until there is one."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"].get("repository", "")


def binary() -> pathlib.Path:
    named = os.environ.get("PROOFHOUSE_BINARY")
    if named:
        return pathlib.Path(named).resolve()
    profile = os.environ.get("PROOFHOUSE_PROFILE", "dist")
    subprocess.run(
        ["cargo", "build", "--locked", "--workspace", "--bin", "proofhouse", "--profile", profile], cwd=ROOT, check=True
    )
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    name = "proofhouse.exe" if os.name == "nt" else "proofhouse"
    return target / ("debug" if profile == "dev" else profile) / name


def platform(content: bytes) -> str:
    """The platform of a binary, as wheels say it."""
    machine = {0x3E: "x86_64", 0xB7: "aarch64"}
    if content[:4] == b"\x7fELF":
        cpu = machine[int.from_bytes(content[18:20], "little")]
        foreign = [name.decode() for name in libraries(content) if not EVERYWHERE.fullmatch(name)]
        if foreign:
            raise SystemExit(f"the binary needs {', '.join(foreign)}, which not every Linux has")
        needed = [int(minor) for minor in re.findall(rb"\x00GLIBC_2\.(\d+)", content)]
        # Without glibc, it runs everywhere.
        return f"manylinux_2_{max(needed)}_{cpu}" if needed else f"musllinux_1_1_{cpu}"
    if content[:4] == b"\xcf\xfa\xed\xfe":
        # Not what Python says of this Mac: its own program may be for both processors, ours is for one.
        cpu = int.from_bytes(content[4:8], "little") if len(content) >= 8 else None
        if cpu not in MACS:
            raise SystemExit("the binary is for a processor that no Mac wheel is for")
        return MACS[cpu]
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def libraries(content: bytes) -> list[bytes]:
    """The shared libraries that an ELF file of 64 bits asks for."""
    start, size, count = *struct.unpack_from("<Q", content, 32), *struct.unpack_from("<HH", content, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", content, start + number * size) for number in range(count)]
    loaded = [header for header in headers if header[0] == 1]
    dynamic = next((header for header in headers if header[0] == 2), None)
    if dynamic is None:
        return []
    entries = list(struct.iter_unpack("<QQ", content[dynamic[2] : dynamic[2] + dynamic[5] // 16 * 16]))
    table = next(value for tag, value in entries if tag == 5)
    # The table is named by its address in memory; the segment that holds it says where that is in the file.
    at = next(table - address + offset for _, _, offset, address, _, length, _, _ in loaded if address <= table < address + length)
    names = [at + value for tag, value in entries if tag == 1]
    return [content[name : content.index(b"\0", name)] for name in names]


def metadata() -> str:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version()}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        f"Keywords: {','.join(project['keywords'])}",
        *(f"Classifier: {one}" for one in project["classifiers"]),
        *([f"Project-URL: Repository, {repository()}"] if repository() else []),
        "License-File: LICENSE-APACHE",
        "License-File: LICENSE-MIT",
        "Description-Content-Type: text/markdown",
        "",
        (HERE / "README.md").read_text(),
    ]
    return "\n".join(lines)


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    content = binary().read_bytes()
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    name = f"{project['name'].replace('-', '_')}-{version()}"
    tag = f"py3-none-{platform(content)}"
    info = f"{name}.dist-info"
    points = "".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    files: dict[str, bytes] = {}
    package = HERE / "src" / "proofhouse"
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[f"proofhouse/{path.relative_to(package).as_posix()}"] = path.read_bytes()
    script = f"{name}.data/scripts/" + ("proofhouse.exe" if os.name == "nt" else "proofhouse")
    files[script] = content
    for license_file in ("LICENSE-APACHE", "LICENSE-MIT"):
        files[f"{info}/licenses/{license_file}"] = (ROOT / license_file).read_bytes()
    files[f"{info}/METADATA"] = metadata().encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: proofhouse_build\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info}/WHEEL"] = wheel.encode()
    files[f"{info}/entry_points.txt"] = points.encode()
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    file = f"{name}-{tag}.whl"
    pathlib.Path(wheel_directory).mkdir(parents=True, exist_ok=True)
    level = int(os.environ.get("PROOFHOUSE_COMPRESSION", "9"))
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / file, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # Installers make a script executable only if it says that it is a regular file.
            entry.external_attr = (stat.S_IFREG | (0o755 if path == script else 0o644)) << 16
            archive.writestr(entry, data)
    return file


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    return []


if __name__ == "__main__":
    print(build_wheel(sys.argv[1]))
