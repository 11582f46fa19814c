#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws Chrome traces as one SVG: a row a track, time from left to right.

Usage: draw_trace.py FILE.json... > trace.svg
"""
import html
import json
import sys

COLOURS = {"phases": "#8c8c8c", "pack": "#4c78a8", "broadcast": "#f58518", "unpack": "#54a24b", "layer step": "#b279a2"}
WIDTH, LABEL, ROW, TOP = 960, 170, 26, 30


def rows_of(paths: list[str]) -> list[tuple[str, str, list[tuple[float, float, str]]]]:
    """(process, track, [(begin, end, name)]) in the order of the files."""
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        named = {(e["name"], e["pid"], e.get("tid", 0)): e["args"]["name"] for e in events
                 if e["ph"] == "M" and e["name"] in ("process_name", "thread_name")}
        process = next(name for (kind, _, _), name in named.items() if kind == "process_name")
        for (kind, pid, tid), track in named.items():
            if kind != "thread_name":
                continue
            spans = [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in events
                     if e["ph"] == "X" and (e["pid"], e["tid"]) == (pid, tid)]
            rows.append((process, track, spans))
    return rows


def draw(rows) -> str:
    begin = min(s[0] for _, _, spans in rows for s in spans)
    end = max(s[1] for _, _, spans in rows for s in spans)
    scale = (WIDTH - LABEL - 20) / (end - begin)
    height = TOP + ROW * len(rows) + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    for i, (process, track, spans) in enumerate(rows):
        y = TOP + i * ROW
        out.append(f'<text x="8" y="{y + 15}">{html.escape(process)}: {html.escape(track)}</text>')
        for first, last, name in spans:
            x, wide = LABEL + (first - begin) * scale, max((last - first) * scale, 0.5)
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{ROW - 6}" stroke="white" '
                       f'fill="{COLOURS.get(track, "#9d755d")}"><title>{html.escape(name)}: '
                       f'{(last - first) / 1000:.2f} ms</title></rect>')
    y = TOP + len(rows) * ROW + 16
    for k in range(5):
        at = begin + (end - begin) * k / 4
        out.append(f'<text x="{LABEL + (at - begin) * scale:.0f}" y="{y}" fill="#555" text-anchor="middle">'
                   f'{(at - begin) / 1000:.1f} ms</text>')
    return "\n".join(out + ["</svg>\n"])


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    sys.stdout.write(draw(rows_of(sys.argv[1:])))


if __name__ == "__main__":
    main()
