"""What the tests of the command share: each test runs it in a folder of its own."""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest


def paths(usage, count):
    """The first `count` words of the command line as absolute paths, taken from it: unittest reads the rest."""
    if len(sys.argv) <= count:
        sys.exit(usage)
    taken = [os.path.abspath(word) for word in sys.argv[1:1 + count]]
    del sys.argv[1:1 + count]
    CommandTest.program = taken[0]
    return taken[1:]


def long(test):
    """Marks a test of many builds or searches: CTest has it under its own title, labelled evidence, and CI runs some."""
    test.is_long = True
    return test


def long_tests(case):
    """By title."""
    names = unittest.TestLoader().getTestCaseNames(case)
    return {name.removeprefix("test_").replace("_", " "): name for name in names
            if hasattr(getattr(case, name), "is_long")}


def main(case, words, rows):
    """What CTest asks for of `case`: --list, titles of the long tests; --only TITLE; --short, all others. Else words of
    unittest. `rows`: tests that are no methods of `case`, by title."""
    titles = long_tests(case)
    if words == ["--list"]:
        print(*rows, *titles, sep="\n")
        return
    if words[:1] == ["--only"]:
        chosen = [case(titles[words[1]])] if words[1] in titles else [rows[words[1]]]
    elif words == ["--short"]:
        chosen = [case(name) for name in unittest.TestLoader().getTestCaseNames(case) if name not in titles.values()]
    else:
        unittest.main(argv=[sys.argv[0], *words])
    sys.exit(not unittest.TextTestRunner().run(unittest.TestSuite(chosen)).wasSuccessful())


def folder_for(test):
    """An empty folder, removed behind the test. All tests of a process have the same: what ccache has compiled is known by
    where its sources lay."""
    folder = pathlib.Path(tempfile.gettempdir()) / f"attn-diag-test-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    test.addCleanup(shutil.rmtree, folder, ignore_errors=True)
    return folder


class CommandTest(unittest.TestCase):
    program = ""

    def setUp(self):
        self.folder = folder_for(self)

    def finished(self, line, code, **env):
        """Runs `attn-diag LINE`, which ends with `code`."""
        result = subprocess.run([self.program, *shlex.split(line)], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600,
                                env={**os.environ, "LC_ALL": "C.UTF-8", **env})
        self.assertEqual(result.returncode, code, f"{line}\n{result.stdout}\n{result.stderr}")
        return result

    def call(self, line, code=0, **env):
        """What it says: on stderr where there is nothing that it could compare."""
        result = self.finished(line, code, **env)
        return result.stderr if code == 2 and not result.stdout else result.stdout
