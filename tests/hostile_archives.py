#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes archives that broke other people's unpackers, and what is right for each.

usage: hostile_archives.py DIRECTORY OUTSIDE

OUTSIDE is an absolute path that absolute names and links point to; it holds the file "canary".
DIRECTORY/expected gets one line for each archive: FILE CHECKOUT IMAGE LAYER, where the last three
are ok, bad or limit: the kind of result when 8 MiB and 2000 entries are allowed.
"""
import bz2
import gzip
import io
import lzma
import os
import struct
import sys
import tarfile
import zlib

ENTRIES = 2000
BYTES = 8 << 20
FILE, DIR, SYM, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
CHR, BLK, FIFO = tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE
CASES = {}


def case(checkout, image=None, suffix=".tar", layer=None):
    """Registers a function that returns the bytes of an archive."""
    def register(make):
        CASES[make.__name__ + suffix] = (make, checkout, image or checkout,
                                         layer or image or checkout)
        return make
    return register


def entry(name, kind=FILE, data=b"", link="", mode=0o644, uid=0, gid=0, mtime=0, dev=(0, 0),
          pax=None):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname, info.mode = kind, len(data), link, mode
    info.uid, info.gid, info.mtime = uid, gid, mtime
    info.devmajor, info.devminor = dev
    info.pax_headers = pax or {}
    return info, data


def tar(*entries, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def header(name, kind=b"0", size=0, link=b"", patch=()):
    """One raw ustar header; PATCH: (offset, bytes) pairs."""
    block = bytearray(512)
    for at, value in [(0, name), (100, b"0000644\0"), (108, b"0000000\0"), (116, b"0000000\0"),
                      (124, b"%011o\0" % size), (136, b"00000000000\0"), (148, b" " * 8),
                      (156, kind), (157, link), (257, b"ustar\00000"), *patch]:
        block[at:at + len(value)] = value
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


END = b"\0" * 1024
OUTSIDE = sys.argv[2] if len(sys.argv) > 2 else "/nonexistent"


# ---- names that lead out ----

@case("bad")
def dotdot():
    return tar(entry("ok", data=b"1"), entry("../escaped", data=b"x"))


@case("bad")
def dotdot_inside():
    return tar(entry("a", DIR), entry("a/../../escaped", data=b"x"))


@case("bad")
def dotdot_last():
    return tar(entry("a/..", DIR, mode=0o777))


@case("ok")
def absolute():
    return tar(entry(OUTSIDE + "/escaped", data=b"x"), entry("ok", data=b"1"))


@case("ok")
def absolute_slashes():
    return tar(entry("//.//" + OUTSIDE + "/./escaped", data=b"x"))


@case("bad")
def top_as_file():
    return tar(entry("./", data=b"x"))


@case("bad")
def top_as_link():
    return tar(entry(".", SYM, link=OUTSIDE), entry("escaped", data=b"x"))


@case("ok")
def top_as_directory():
    return tar(entry("./", DIR, mode=0o700), entry("./ok", data=b"x"))


# ---- symbolic links ----

@case("bad")
def symlink_then_write():
    return tar(entry("d", SYM, link=OUTSIDE), entry("d/escaped", data=b"x"))


@case("bad")
def symlink_then_mkdir():
    return tar(entry("d", SYM, link=OUTSIDE), entry("d/e/f", DIR))


@case("bad")
def symlink_chain():
    return tar(entry("a", SYM, link="."), entry("a/b", SYM, link=".."),
               entry("a/b/escaped", data=b"x"))


@case("bad")
def symlink_deep():
    return tar(entry("a/b", DIR), entry("a/b/c", SYM, link="../../.."),
               entry("a/b/c/escaped", data=b"x"))


@case("ok")
def symlink_then_file():
    return tar(entry("s", SYM, link=OUTSIDE + "/canary"), entry("s", data=b"overwritten"))


@case("ok")
def symlink_then_directory():
    return tar(entry("d", SYM, link=OUTSIDE), entry("d", DIR, mode=0o700),
               entry("d/escaped", data=b"x"))


@case("bad")
def symlink_after_directory():
    return tar(entry("d", DIR, mode=0o777), entry("d/f", data=b"x"), entry("d", SYM, link=OUTSIDE))


@case("ok")
def symlink_takes_directory():
    """The directory's own mode and time must not go through the link that replaced it."""
    return tar(entry("d", DIR, mode=0o777, mtime=1), entry("d", SYM, link=OUTSIDE))


@case("bad")
def symlink_swapped_under_cache():
    return tar(entry("d/f", data=b"x"), entry("d/f", SYM, link="g"), entry("e", SYM, link=OUTSIDE),
               entry("d/h", data=b"x"), entry("e/escaped", data=b"x"))


@case("bad")
def symlink_loop():
    return tar(entry("a", SYM, link="b"), entry("b", SYM, link="a"), entry("a/f", data=b"x"))


@case("bad")
def symlink_empty():
    return tar(entry("s", SYM, link=""))


@case("bad")
def symlink_long():
    return tar(entry("s", SYM, link="x" * 5000))


@case("ok")
def directory_replaced_and_used():
    return tar(entry("d", DIR), entry("d/e", DIR), entry("x", data=b"1"), entry("d/e", data=b"2"),
               entry("d/e", DIR), entry("d/e/f", data=b"3"))


@case("ok")
def top_directory_replaced():
    """The descriptor of a directory that was removed must not be used again."""
    return tar(entry("d", DIR), entry("d/e", DIR), entry("d/e", data=b"1"), entry("d/e", DIR),
               entry("d/e/f", data=b"2"), entry("g", DIR), entry("g", data=b""), entry("g", DIR),
               entry("g/h", data=b"3"))


# ---- hard links ----

@case("bad")
def hardlink_dotdot():
    return tar(entry("h", HARD, link="../../../../etc/passwd"), entry("h", data=b"overwritten"))


@case("bad")
def hardlink_absolute():
    return tar(entry("h", HARD, link=OUTSIDE + "/canary"), entry("h", data=b"overwritten"))


@case("bad")
def hardlink_through_symlink():
    return tar(entry("d", SYM, link=OUTSIDE), entry("h", HARD, link="d/canary"),
               entry("h", data=b"overwritten"))


@case("ok")
def hardlink_to_symlink():
    return tar(entry("s", SYM, link=OUTSIDE + "/canary"), entry("h", HARD, link="s"),
               entry("h", data=b"overwritten"))


@case("bad")
def hardlink_door():
    return tar(entry("victim", data=b"v"), entry("door/escaped", HARD, link="victim"),
               entry("door", SYM, link=OUTSIDE))


@case("bad")
def hardlink_to_directory():
    return tar(entry("d", DIR), entry("h", HARD, link="d"))


@case("bad")
def hardlink_to_nothing():
    return tar(entry("h", HARD, link="nothing"))


@case("bad")
def hardlink_to_top():
    return tar(entry("h", HARD, link="."))


@case("ok")
def hardlink_to_itself():
    return tar(entry("a", data=b"1"), entry("a", HARD, link="a"))


@case("ok")
def hardlink_with_data():
    """Data of a link must not be written into the file that it links to."""
    # behind a pax header the size of a link is believed
    return (header(b"x", b"g", size=12) + b"12 comment=\n".ljust(512, b"\0")
            + header(b"a", size=1) + b"1".ljust(512, b"\0")
            + header(b"h", b"1", size=9, link=b"a") + b"different".ljust(512, b"\0") + END)


@case("ok")
def hardlink_then_replaced():
    return tar(entry("a", data=b"original"), entry("h", HARD, link="a"), entry("h", data=b"new"))


# ---- types ----

@case("ok")
def devices():
    return tar(entry("mem", CHR, dev=(1, 1), mode=0o666), entry("sda", BLK, dev=(8, 0)),
               entry("fifo", FIFO), entry("ok", data=b"1"))


@case("bad")
def hardlink_to_device():
    return tar(entry("mem", CHR, dev=(1, 1), mode=0o666), entry("h", HARD, link="mem"))


@case("ok", "bad", layer="ok")
def whiteouts():
    return tar(entry("etc", DIR, mode=0o755), entry("etc/gone", CHR, dev=(0, 0)),
               entry("etc/.wh.passwd"), entry("etc/.wh..wh..opq"),
               entry("opaque", DIR, mode=0o755, pax={"SCHILY.xattr.trusted.overlay.opaque": "y",
                                                     "SCHILY.xattr.user.overlay.opaque": "y"}),
               entry("redirect", DIR, mode=0o755,
                     pax={"SCHILY.xattr.trusted.overlay.redirect": "/etc",
                          "SCHILY.xattr.user.overlay.redirect": "/etc"}),
               entry("metacopy", data=b"x", pax={"SCHILY.xattr.trusted.overlay.metacopy": "",
                                                 "SCHILY.xattr.user.overlay.metacopy": "",
                                                 "SCHILY.xattr.user.comment": "any"}))


@case("ok", "bad", layer="ok")
def whiteouts_of_its_own():
    """None of them touches what the layer itself has, wherever it stands."""
    return tar(entry(".wh.d"), entry("d", DIR, mode=0o755), entry("d/f", data=b"1"),
               entry("f", data=b"1"), entry(".wh.f"), entry("a/b/.wh.c"),
               entry("x/.wh..wh..opq"), entry(".wh..wh.plnk", DIR), entry("x/f", data=b"1"))


@case("ok", "bad")
def whiteout_of_dotdot():
    return tar(entry("d", DIR, mode=0o755), entry("d/.wh..."))


@case("ok", "bad")
def whiteout_of_nothing():
    return tar(entry(".wh."))


@case("ok", "bad")
def whiteout_as_directory():
    return tar(entry(".wh.d", DIR, mode=0o755), entry(".wh.d/f", data=b"1"))


@case("bad")
def whiteout_through_link():
    return tar(entry("l", SYM, link=OUTSIDE), entry("l/.wh.canary"))


@case("bad")
def opaque_through_link():
    return tar(entry("l", SYM, link=OUTSIDE), entry("l/.wh..wh..opq"))


@case("bad")
def opaque_is_link():
    """By the end its name is that of a link."""
    return tar(entry("d/.wh..wh..opq"), entry("d", SYM, link=OUTSIDE))


@case("ok", "bad", layer="limit")
def opaque_names():
    deep = "/".join(["n" * 250] * 12)
    return tar(*[entry(f"{deep}/{i}/.wh..wh..opq") for i in range(400)])


@case("ok", "bad")
def opaque_too_deep():
    return tar(entry("/".join(["n" * 250] * 17) + "/.wh..wh..opq"))


@case("ok")
def setuid():
    return tar(entry("su", data=b"#!/bin/sh\n", mode=0o6755), entry("d", DIR, mode=0o7777))


@case("ok", "bad")
def bad_capability():
    return tar(entry("cap", data=b"x", mode=0o755,
                     pax={"SCHILY.xattr.security.capability": "\x01"}))


@case("ok")
def acl():
    return tar(entry("f", data=b"x", pax={"SCHILY.acl.access": "user::rw-,user:root:rwx"}))


@case("bad")
def file_as_parent():
    return tar(entry("p", data=b"x"), entry("p/child", data=b"y"))


@case("bad")
def duplicates_and_flips():
    return tar(entry("x", DIR, mode=0o755), entry("x/f", data=b"1"), entry("x", data=b"a file"),
               entry("x", SYM, link="/"), entry("x/tmp/escaped", data=b"x"))


@case("ok")
def duplicates():
    return tar(entry("f", data=b"first"), entry("f", data=b"second"), entry("d", DIR, mode=0o700),
               entry("d", DIR, mode=0o755))


@case("ok")
def locked_directories():
    return tar(entry("locked", DIR, mode=0), entry("locked/f", data=b"x", mode=0),
               entry("ro", DIR, mode=0o555), entry("ro/sub", DIR, mode=0o555),
               entry("ro/sub/f", data=b"x", mode=0o444))


# ---- names and numbers ----

@case("ok", "bad")
def last_id():
    return tar(entry("f", data=b"x", uid=4294967295))


@case("ok")
def big_ids():
    return tar(entry("f", data=b"x", uid=4294967294, gid=2147483648),
               entry("before", data=b"x", mtime=-1), entry("far", data=b"x", mtime=2 ** 40))


@case("bad")
def name_of_300():
    return tar(entry("n" * 300, data=b"x"))


@case("bad")
def parent_of_300():
    return tar(entry("n" * 300 + "/f", data=b"x"))


@case("ok")
def path_of_6000():
    return tar(entry("/".join(["d" * 200] * 30) + "/f", data=b"x"))


@case("bad")
def path_of_20000():
    return tar(entry("/".join(["d" * 200] * 100) + "/f", data=b"x"))


@case("limit")
def deep_and_unnamed():
    """Directories that no entry names count, too."""
    return tar(*[entry("%d/%s/f" % (i, "/".join("d" * 100))) for i in range(21)])


@case("ok")
def odd_names():
    return tar(entry("new\nline", data=b"x"), entry("\x1b[31mred", data=b"x"), entry("-rf"),
               entry("..."), entry(" "), entry("decomposed e\u0301"))


@case("ok")
def raw_names():
    return header(b"latin-\xe9") + header(b"\xff\xfe") + END


@case("bad")
def no_name():
    return header(b"") + END


# ---- sizes ----

@case("limit")
def sparse_tebibyte():
    field = b"\x80" + (1 << 40).to_bytes(11, "big")
    zero = b"\x80" + bytes(11)
    return header(b"sparse", b"S", patch=[(257, b"ustar  \0"), (386, zero), (398, zero),
                                          (483, field)]) + END


@case("limit")
def claims_much():
    return header(b"f", patch=[(124, b"\x80" + (1 << 62).to_bytes(11, "big"))]) + END


@case("bad")
def negative_size():
    return header(b"f", patch=[(124, b"\xff" * 12)]) + END


@case("limit")
def many_entries():
    return tar(*[entry("m/%06d" % i) for i in range(ENTRIES + 1)])


@case("limit", suffix=".tar.gz")
def bomb():
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as stream:
        stream.write(header(b"zeros", size=BYTES * 2))
        for _ in range(BYTES * 2 >> 20):
            stream.write(bytes(1 << 20))
        stream.write(END)
    return out.getvalue()


@case("bad")
def endless_pax():
    """Headers about headers, and never an entry."""
    record = b"12 comment=\n"
    return (header(b"x", b"g", size=len(record)) + record.ljust(512, b"\0")) * 1000 + END


# ---- damage ----

@case("bad")
def empty():
    return b""


@case("bad")
def garbage():
    return bytes((i * 7919 + 13) % 251 for i in range(4096))


@case("bad")
def cut_in_data():
    return tar(entry("f", data=b"x" * 4000))[:1500]


@case("bad")
def cut_in_header():
    return tar(entry("a"), entry("b"))[:700]


@case("bad")
def cut_between_entries():
    return tar(entry("a", data=b"x"), entry("b", data=b"x"))[:1024]


@case("bad")
def bad_checksum():
    block = bytearray(header(b"a") + header(b"b") + END)
    block[512] ^= 1
    return bytes(block)


@case("ok")
def nothing():
    return END


@case("ok")
def rubbish_behind_the_end():
    return header(b"a") + END + b"rubbish" * 10000


@case("ok", suffix=".tar.gz")
def plain_gzip():
    return gzip.compress(tar(entry("f", data=b"x")), mtime=0)


@case("ok", suffix=".tar.bz2")
def plain_bzip2():
    return bz2.compress(tar(entry("f", data=b"x")))


@case("ok", suffix=".tar.xz")
def plain_xz():
    return lzma.compress(tar(entry("f", data=b"x")))


@case("bad", suffix=".tar.gz")
def cut_gzip():
    return gzip.compress(tar(entry("f", data=os.urandom(5000))), mtime=0)[:3000]


@case("limit", suffix=".tar.xz")
def xz_that_wants_4_gib():
    stream = bytearray(lzma.compress(tar(entry("f", data=b"x"))))
    size = (stream[12] + 1) * 4
    # the block's header: its size, flags, filter LZMA2, size of properties, dictionary
    assert stream[14] == 0x21 and stream[15] == 1
    stream[16] = 40
    stream[12 + size - 4:12 + size] = struct.pack("<I", zlib.crc32(stream[12:12 + size - 4]))
    return bytes(stream)


def main():
    directory = sys.argv[1]
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "expected"), "w", encoding="ascii") as expected:
        for name, (make, checkout, image, layer) in sorted(CASES.items()):
            with open(os.path.join(directory, name), "wb") as out:
                out.write(make())
            expected.write(f"{name} {checkout} {image} {layer}\n")


if __name__ == "__main__":
    main()
