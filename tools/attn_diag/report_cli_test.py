#!/usr/bin/env python3
"""Writes pages with attn-diag report and reads them, also in a browser.

usage: report_cli_test.py ATTN_DIAG [unittest arguments]
"""
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES / "zoo"))
import zoo  # noqa: E402

D3 = pathlib.Path("/usr/share/nodejs/d3/dist/d3.min.js")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WRONG = ("--kernel", "split_k@reduce-counts-l-twice", "--mask", "causal", "--no-history")
VOID = {"meta", "br", "hr", "img", "link", "input"}


def installed(what, path):
    return unittest.skipUnless(path, f"SKIP: {what} is not installed")


class Page(html.parser.HTMLParser):
    """Elements as they nest, what they would load, and the text that a reader sees."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.loads, self.marked = [], "", [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.loads += [f"{tag} {name}={value}" for name, value in attributes
                       if name in ("src", "href", "srcset", "data", "action") or value and "url(" in value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]} at line {self.getpos()}"
        self.open.pop()

    def handle_data(self, data):
        if "script" in self.open or "style" in self.open:
            return
        self.text += data
        if "mark" in self.open:
            self.marked.append(data)


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-report-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        made = cls.call("dump", *WRONG, "-o", "x.h5")
        assert made.returncode == 0, made.stderr

    @classmethod
    def call(cls, *words, **how):
        return subprocess.run([PROGRAM, *map(str, words)], cwd=cls.folder, text=True, capture_output=True, timeout=600,
                              check=False, **how)

    def page(self, *words):
        out = self.call("report", *words, "-o", "page.html", "--force")
        self.assertEqual(out.returncode, 1, out.stdout + out.stderr)
        text = (self.folder / "page.html").read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual(page.open, [], "every element is closed")
        return page, text, out

    def check_loads_nothing(self, page, text):
        self.assertEqual(page.loads, [])
        style = text[text.index("<style>"):text.index("</style>")]
        self.assertNotIn("url(", style)
        self.assertNotIn("@import", style)
        self.assertIn("default-src 'none'", text)

    @installed("D3 (node-d3)", D3.exists())
    def test_the_page_of_a_dump(self):
        page, text, out = self.page("x.h5")
        self.check_loads_nothing(page, text)
        self.assertIn("Reduce diverges first, head 0, query 1, query tile 0, kv tile 0, split 0, dim 0", page.text)
        self.assertIn("merged_o(0, 0, 1, 0, 0) is -0.7714995", page.text)
        self.assertIn("NAMED: combine-counts-l-twice", page.text)
        self.assertIn("first wrong", page.text)
        self.assertRegex(page.text, r"output-in-range\s*.*\s*broken in [\d,]+ of [\d,]+ cells, first o\(0, 0, ")
        self.assertIn("Not known of a file: the line", page.text)
        self.assertIn("report x.h5", page.text)
        self.assertIn("Written: page.html", out.stdout)
        self.assertLess(len(text), 1 << 20)
        data = json.loads(text[text.index('id="data">') + 10:].split("</script>", 1)[0])
        self.assertEqual(data["first"], {"tensor": "merged_o", "batch": 0, "head": 0, "query": 1, "column": 0})
        merged = next(t for t in data["tensors"] if t["name"] == "merged_o")
        self.assertEqual(sum(merged["by_limit"]), merged["compared"])
        # Right are those up to the bound: edge 6 of the half decades from 10^-3, in bin 1 + 6.
        self.assertEqual(sum(merged["by_limit"][8:]), merged["mismatched"])

    @installed("D3 (node-d3)", D3.exists())
    def test_the_page_of_a_kernel_marks_the_line(self):
        kernel = zoo.load("warp_per_row")
        source = self.folder / "source"
        shutil.copytree(kernel.folder, source)
        for name in kernel.sources:
            file = source / name
            right = "      const float pj = __shfl_sync(kFull, p, j);\n"
            file.write_text(file.read_text().replace(right, right + "      l += pj;  // & <planted>\n"))
        built = self.call("build", *[source / s for s in kernel.sources], "-o", "k.so", *kernel.build_flags, "--no-nvcc")
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
        page, text, _ = self.page("--kernel", "./k.so", *kernel.cases[0].split(), "--no-history")
        self.check_loads_nothing(page, text)
        self.assertTrue(any("l += pj;  // & <planted>" in line for line in page.marked), page.marked)
        self.assertRegex(page.text, "CLEAN: nothing found|FOUND: ")
        self.assertIn("report --kernel ./k.so", page.text)

    def test_the_terminal_has_pictures_within_80_columns(self):
        out = self.call("report", "x.h5", env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "COLUMNS": "200"})
        self.assertEqual(out.returncode, 1, out.stderr)
        lines = out.stdout.splitlines()
        self.assertTrue(lines[0].startswith("DIVERGES: reduce diverges first"), lines[0])
        self.assertLessEqual(max(len(line) for line in lines if "Reproduce" not in line), 80)
        self.assertIn("Worst of merged_o in each head", out.stdout)
        self.assertIn("Error of merged_o, head 0, by query (down) and dim (across)", out.stdout)
        rows = [line for line in lines if re.match(r" +\d+  [·░▒▓█N]+$", line)]
        self.assertTrue(any("█" in row for row in rows), out.stdout)
        self.assertRegex(out.stdout, r"<= 1x +[\d,]+ +█+")

    def test_json(self):
        out = self.call("report", "x.h5", "--json")
        report = json.loads(out.stdout)
        self.assertEqual((report["command"], report["verdict"], report["page"]), ("report", "diverges", None))
        self.assertIn("combine-counts-l-twice", report["diagnosis"])
        self.assertIsNone(report["line"])

    @installed("gnuplot", shutil.which("gnuplot"))
    def test_the_heat_map_as_png(self):
        out = self.call("report", "x.h5", "--png", "map.png", "--quiet")
        self.assertEqual(out.returncode, 1, out.stderr)
        data = (self.folder / "map.png").read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(len(data), 4000)
        self.assertEqual(sorted(f.name for f in self.folder.glob("map*")), ["map.png"])
        self.assertEqual(self.call("report", "x.h5", "--png", "map.png").returncode, 2)  # it exists

    def test_what_is_missing_is_said(self):
        out = self.call("report", "x.h5", "--png", "no.png", env={"PATH": "/nowhere"})
        self.assertEqual(out.returncode, 2)
        self.assertIn("apt-get install gnuplot-nox", out.stderr)
        for words in ((), ("x.h5", "--kernel", "fa1"), ("x.h5", "--seqlen", "4"), ("x.h5", "--force")):
            self.assertEqual(self.call("report", *words).returncode, 2, words)

    @installed("D3 (node-d3)", D3.exists())
    def test_without_d3_there_is_no_page_but_a_sentence(self):
        hide = f"mount -t tmpfs none {D3.parent} && exec {PROGRAM} report x.h5 -o none.html"
        out = subprocess.run(["unshare", "--mount", "sh", "-c", hide], cwd=self.folder, text=True, capture_output=True,
                             check=False)
        if out.returncode != 2 or "unshare" in out.stderr or "mount:" in out.stderr:
            self.skipTest("SKIP: a folder cannot be hidden here: " + out.stderr)
        self.assertIn("apt-get install node-d3", out.stderr)
        self.assertFalse((self.folder / "none.html").exists())

    @installed("D3 (node-d3)", D3.exists())
    @installed("chromium", CHROMIUM)
    def test_in_a_browser(self):
        _, text, _ = self.page("x.h5")
        probe = """<script>window.addEventListener("load", () => {
          const box = document.getElementById("cell").getBoundingClientRect(), map = document.querySelector(".panel:not(.narrow) canvas");
          const pixels = map.getContext("2d").getImageData(0, 0, map.width, map.height).data;
          let red = 0;
          for (let i = 0; i < pixels.length; i += 4) red += pixels[i] > 150 && pixels[i + 1] < 90 && pixels[i + 3] > 200;
          document.title = "PROBE" + JSON.stringify({ width: innerWidth, wide: document.documentElement.scrollWidth, left: box.left,
            right: box.right, height: box.height, red, cell: document.getElementById("cell").innerText });
        });</script></body>"""
        (self.folder / "probed.html").write_text(text.replace("</body>", probe), encoding="utf-8")
        for width in (1280, 390):
            with self.subTest(width=width):
                self.look(width)

    def look(self, width):
        # In a frame: a window may not be as narrow as a phone.
        frame = self.folder / f"frame{width}.html"
        frame.write_text(f'<iframe src="probed.html" style="border:0;width:{width}px;height:3000px"></iframe><script>'
                         'addEventListener("load", () => setTimeout(() => { document.title = frames[0].document.title; }, 500));</script>')
        out = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                              "--enable-logging=stderr", "--virtual-time-budget=8000", f"--user-data-dir={self.folder}/profile",
                              "--window-size=1400,3100", "--dump-dom", frame.as_uri()],
                             text=True, capture_output=True, timeout=300, check=False)
        errors = [line for line in out.stderr.splitlines() if "CONSOLE" in line]
        self.assertEqual(errors, [])
        found = re.search("<title>PROBE(.*?)</title>", out.stdout, re.DOTALL)
        self.assertIsNotNone(found, out.stdout[:500] + out.stderr[-2000:])
        seen = json.loads(found.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        self.assertEqual(seen["width"], width)
        self.assertLessEqual(seen["wide"], width, "nothing is beyond the right edge")
        self.assertGreaterEqual(seen["left"], 0)
        self.assertLessEqual(seen["right"], width)
        self.assertGreater(seen["height"], 100)
        self.assertGreater(seen["red"], 100, "wrong cells are red in the map")
        for words in ("The first wrong cell", "merged_o (reduce)", "head 0, query 1, dim 0, split 0", "-0.771499515"):
            self.assertIn(words, seen["cell"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
