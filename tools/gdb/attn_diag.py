"""gdb commands for kernels that run on the host executor.

    gdb -x tools/gdb/attn_diag.py --args attn-diag run --kernel ./mine.so ... --in-process --no-sanity

    break-thread mine.cu:31 1,0,0 5,0,0   stop there in block (1,0,0), thread (5,0,0) alone
    kernel-threads                        the block that runs: who runs, who waits where
    print $block(), $thread()             which block and thread this is
    break mine.cu:31 if $is_thread("1,0,0", "5,0,0")

`run` runs a case three times, in three orders of threads: --no-sanity leaves the one that is judged.
"""

import gdb


def variable(name):
    """The three fields of threadIdx or blockIdx of the thread that gdb looks at."""
    value = gdb.parse_and_eval(name)
    return tuple(int(value[field]) for field in ("x", "y", "z"))


def parse(text):
    """(1, 0, 0) for "1", "1,0" and "1,0,0"."""
    parts = [part.strip() for part in str(text).strip("()\"").split(",")]
    if not 1 <= len(parts) <= 3 or not all(part.isdigit() for part in parts):
        raise gdb.GdbError(f"'{text}' is no block or thread: write it as x,y,z.")
    numbers = [int(part) for part in parts]
    return tuple(numbers + [0] * (3 - len(numbers)))


class Block(gdb.Function):
    """$block(): blockIdx of the thread that runs, as text."""

    def __init__(self):
        super().__init__("block")

    def invoke(self):
        return "(%d, %d, %d)" % variable("blockIdx")


class Thread(gdb.Function):
    """$thread(): threadIdx of the thread that runs, as text."""

    def __init__(self):
        super().__init__("thread")

    def invoke(self):
        return "(%d, %d, %d)" % variable("threadIdx")


class IsThread(gdb.Function):
    """$is_thread("bx,by,bz", "tx,ty,tz"): whether that is the block and thread that runs."""

    def __init__(self):
        super().__init__("is_thread")

    def invoke(self, block, thread):
        return (variable("blockIdx") == parse(block.string())
                and variable("threadIdx") == parse(thread.string()))


class ThreadBreakpoint(gdb.Breakpoint):
    def __init__(self, location, block, thread):
        super().__init__(location)
        self.block, self.thread_index = block, thread

    def stop(self):
        return variable("blockIdx") == self.block and variable("threadIdx") == self.thread_index


class BreakThread(gdb.Command):
    """break-thread LOCATION BLOCK THREAD: stop at a line in one block and thread, as mine.cu:31 1,0,0 5,0,0."""

    def __init__(self):
        super().__init__("break-thread", gdb.COMMAND_BREAKPOINTS, gdb.COMPLETE_LOCATION)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if len(words) != 3:
            raise gdb.GdbError("break-thread needs LOCATION BLOCK THREAD, as mine.cu:31 1,0,0 5,0,0")
        ThreadBreakpoint(words[0], parse(words[1]), parse(words[2]))


class KernelThreads(gdb.Command):
    """kernel-threads: of the block that the current thread runs, which threads run, wait and have ended."""

    def __init__(self):
        super().__init__("kernel-threads", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        # The call must move no other thread: one that runs another block could stop at a breakpoint or fault in it.
        locking = gdb.parameter("scheduler-locking")
        gdb.execute("set scheduler-locking on")
        try:
            print(gdb.parse_and_eval("attn_diag_threads()").string())
        finally:
            gdb.execute(f"set scheduler-locking {locking}")


gdb.execute("set breakpoint pending on")  # a kernel's library is loaded later
for each in Block, Thread, IsThread, BreakThread, KernelThreads:
    each()
