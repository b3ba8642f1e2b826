"""The build backend: what a wheel says of the binary in it."""

import pathlib
import struct
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "backend"))

import proofhouse_build  # noqa: E402


def mach_o(cpu):
    """The first bytes of a program for macOS on this processor."""
    return struct.pack("<IIIIIIII", 0xFEEDFACF, cpu, 3, 2, 0, 0, 0, 0)


def test_a_binary_for_macos_says_its_processor():
    assert proofhouse_build.platform(mach_o(0x0100000C)) == "macosx_11_0_arm64"
    assert proofhouse_build.platform(mach_o(0x01000007)) == "macosx_10_12_x86_64"


def test_a_binary_for_an_unknown_processor_is_refused():
    with pytest.raises(SystemExit, match="processor"):
        proofhouse_build.platform(mach_o(0x01000012))
    with pytest.raises(SystemExit, match="processor"):
        proofhouse_build.platform(mach_o(0x0100000C)[:6])
