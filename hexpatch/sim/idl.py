"""The stand-in for qaic: an IDL file to NAME.h, NAME_stub.c and NAME_skel.c.

On the wire, method 0 opens (URI in, handle out), 1 closes, the IDL's own are numbered from 2. Plain
inputs and the lengths of sequences are packed into the first input buffer in order, naturally
aligned (a C struct does that); each input sequence is a further buffer. Outputs likewise.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hexpatch.sim.idlread import Idl, IdlError, Method, Param, parse


def _declared(param: Param) -> str:
    const = "const " if param.way == "in" else ""
    if param.sequence or param.string:
        return f"{const}{param.ctype} * {param.name}" + (
            f", int {param.name}Len" if param.sequence else ""
        )
    if param.struct or param.way != "in":
        return f"{const}{param.ctype} * {param.name}"
    return f"{param.ctype} {param.name}"


def _prototype(idl: Idl, method: Method) -> str:
    params = "".join(f", {_declared(p)}" for p in method.params)
    return f"AEEResult {idl.name}_{method.name}(remote_handle64 _h{params})"


def _blocks(method: Method) -> tuple[list[str], list[str]]:
    """Members of the packed inputs and outputs."""
    ins, outs = [], []
    for p in method.params:
        if p.sequence or p.string:
            ins.append(f"uint32 {p.name}Len;")
            continue
        if p.way in ("in", "inrout"):
            ins.append(f"{p.ctype} {p.name};")
        if p.way in ("rout", "inrout"):
            outs.append(f"{p.ctype} {p.name};")
    return ins, outs


def _buffers(method: Method) -> tuple[list[Param | None], list[Param | None]]:
    """The call's buffers in order; None is the packed block."""
    ins, outs = _blocks(method)
    long = [p for p in method.params if p.sequence or p.string]
    return (
        [*([None] if ins else []), *(p for p in long if p.way in ("in", "inrout"))],
        [*([None] if outs else []), *(p for p in long if p.way in ("rout", "inrout"))],
    )


def header(idl: Idl) -> str:
    """NAME.h, for both sides."""
    name = idl.name
    out = [
        f"#ifndef {name.upper()}_H",
        f"#define {name.upper()}_H",
        "",
        "#include <AEEStdDef.h>",
        "#include <remote.h>",
        "",
        f'#define {name}_URI "file:///lib{name}_skel.so?{name}_skel_handle_invoke&_modver=1.0"',
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for struct, members in idl.structs.items():
        out += [f"typedef struct {struct} {struct};", f"struct {struct} {{"]
        out += [*(f"    {m}" for m in members), "};", ""]
    out.append(f"AEEResult {name}_open(const char * uri, remote_handle64 * _h);")
    out.append(f"AEEResult {name}_close(remote_handle64 _h);")
    out += [f"{_prototype(idl, m)};" for m in idl.methods]
    out += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(out)


def _structs(method: Method) -> list[str]:
    made = []
    for side, members in zip(("in", "out"), _blocks(method), strict=True):
        if members:
            made.append(f"    struct {{ {' '.join(members)} }} _{side} = {{ 0 }};")
    return made


def _includes(idl: Idl) -> list[str]:
    return ["#include <string.h>", "#include <AEEStdErr.h>", f'#include "{idl.name}.h"', ""]


def stub(idl: Idl) -> str:
    """NAME_stub.c, for the host."""
    out = [
        *_includes(idl),
        f"AEEResult {idl.name}_open(const char * uri, remote_handle64 * _h) {{",
        "    return remote_handle64_open(uri, _h);",
        "}",
        "",
        f"AEEResult {idl.name}_close(remote_handle64 _h) {{",
        "    return remote_handle64_close(_h);",
        "}",
    ]
    for m in idl.methods:
        ins, outs = _buffers(m)
        out += ["", f"{_prototype(idl, m)} {{", *_structs(m)]
        if ins or outs:
            out.append(f"    remote_arg _pra[{len(ins) + len(outs)}];")
        for p in m.params:
            if p.string:
                out.append(f"    _in.{p.name}Len = (uint32) strlen({p.name}) + 1;")
            elif p.sequence:
                out.append(f"    _in.{p.name}Len = (uint32) {p.name}Len;")
            elif p.way != "rout":
                star = "*" if p.struct or p.way == "inrout" else ""
                out.append(f"    _in.{p.name} = {star}{p.name};")
        for i, buffer in enumerate([*ins, *outs]):
            block = "_in" if i < len(ins) else "_out"
            where, size = f"&{block}", f"sizeof({block})"
            if buffer is not None:
                where = f"(void *) {buffer.name}"
                size = f"_in.{buffer.name}Len * sizeof({buffer.ctype})"
            out.append(f"    _pra[{i}].buf.pv = {where};")
            out.append(f"    _pra[{i}].buf.nLen = {size};")
        scalars = f"REMOTE_SCALARS_MAKE({m.number}, {len(ins)}, {len(outs)})"
        pra = "_pra" if ins or outs else "NULL"
        out.append(f"    AEEResult _rc = remote_handle64_invoke(_h, {scalars}, {pra});")
        out += [
            f"    if (_rc == AEE_SUCCESS) *{p.name} = _out.{p.name};"
            for p in m.params
            if p.way != "in" and not p.sequence
        ]
        out += ["    return _rc;", "}"]
    return "\n".join([*out, ""])


def skel(idl: Idl) -> str:
    """NAME_skel.c, for the DSP."""
    name = idl.name
    out = [*_includes(idl)]
    for m in idl.methods:
        ins, outs = _buffers(m)
        out.append(
            f"static int call_{m.name}(remote_handle64 _h, uint32_t _sc, remote_arg * _pra) {{"
        )
        out += _structs(m)
        out.append(
            f"    if (REMOTE_SCALARS_INBUFS(_sc) != {len(ins)} || "
            f"REMOTE_SCALARS_OUTBUFS(_sc) != {len(outs)}) return AEE_EBADPARM;"
        )
        for i, side in ((0, "in"), (len(ins), "out")):
            if (ins if side == "in" else outs)[:1] == [None]:
                out.append(f"    if (_pra[{i}].buf.nLen < sizeof(_{side})) return AEE_EBADPARM;")
        if ins[:1] == [None]:
            out.append("    memcpy(&_in, _pra[0].buf.pv, sizeof(_in));")
        for i, buffer in enumerate([*ins, *outs]):
            if buffer is not None:
                size = f"_in.{buffer.name}Len * sizeof({buffer.ctype})"
                out.append(f"    if (_pra[{i}].buf.nLen < {size}) return AEE_EBADPARM;")
        args = ["_h"]
        for p in m.params:
            if p.sequence or p.string:
                i = ins.index(p) if p in ins else len(ins) + outs.index(p)
                if p.way == "inrout":  # two buffers: the caller's data goes into the second
                    second = len(ins) + outs.index(p)
                    size = f"_in.{p.name}Len * sizeof({p.ctype})"
                    out.append(f"    memcpy(_pra[{second}].buf.pv, _pra[{i}].buf.pv, {size});")
                    i = second
                args.append(f"({p.ctype} *) _pra[{i}].buf.pv")
                args += [f"(int) _in.{p.name}Len"] if p.sequence else []
            elif p.way == "in":
                args.append(f"{'&' if p.struct else ''}_in.{p.name}")
            else:
                args.append(f"&_out.{p.name}")
                if p.way == "inrout":
                    out.append(f"    _out.{p.name} = _in.{p.name};")
        out.append(f"    int _rc = {name}_{m.name}({', '.join(args)});")
        if outs[:1] == [None]:
            out.append(f"    memcpy(_pra[{len(ins)}].buf.pv, &_out, sizeof(_out));")
        out += ["    return _rc;", "}", ""]
    out += [
        f"int {name}_skel_handle_invoke(remote_handle64 _h, uint32_t _sc, remote_arg * _pra);",
        f"int {name}_skel_handle_invoke(remote_handle64 _h, uint32_t _sc, remote_arg * _pra) {{",
        "    const uint32_t _in = REMOTE_SCALARS_INBUFS(_sc);",
        "    switch (REMOTE_SCALARS_METHOD(_sc)) {",
        "        case 0:  // the URI is the last input, the handle the first output",
        "            return _in && REMOTE_SCALARS_LENGTH(_sc) > _in",
        f"                ? {name}_open((const char *) _pra[_in - 1].buf.pv,",
        "                    REMOTE_SCALARS_OUTBUFS(_sc) ? _pra[_in].buf.pv : &_pra[_in].h64)",
        "                : AEE_EBADPARM;",
        f"        case 1: return {name}_close(_h);",
        *(f"        case {m.number}: return call_{m.name}(_h, _sc, _pra);" for m in idl.methods),
        "        default: return AEE_EBADPARM;",
        "    }",
        "}",
        "",
    ]
    return "\n".join(out)


def main(argv: list[str]) -> int:
    """`FILE.idl OUTDIR`: write the three files, those that differ."""
    options = argparse.ArgumentParser(prog="qaic", description=__doc__)
    options.add_argument("idl", type=Path)
    options.add_argument("into", type=Path)
    chosen = options.parse_args(argv)
    try:
        made = parse(chosen.idl.read_text(encoding="utf-8"), str(chosen.idl))
    except IdlError as bad:
        print(bad, file=sys.stderr)
        return 1
    for suffix, text in ((".h", header(made)), ("_stub.c", stub(made)), ("_skel.c", skel(made))):
        (chosen.into / f"{chosen.idl.stem}{suffix}").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
