"""The edits to Go's standard library that call the functions in go/_std.

Each anchor must occur exactly once in its file, so that a Go version that moved the code is detected. The one exception
is `MAP_ORDER`, which occurs in several places. The called functions are documented in go/_std. In a program on real
time all of them are dead code, because `vt` is nil.
"""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """Replace `find` by `replacement` in a file below GOROOT/src."""

    file: str
    find: str
    replacement: str


def _before(file: str, anchor: str, added: str) -> Edit:
    return Edit(file, anchor, added + anchor)


def _after(file: str, anchor: str, added: str) -> Edit:
    return Edit(file, anchor, anchor + added)


_CLOCK = (
    _before("runtime/time_nofake.go", "\treturn nanotime1()\n", "\tif vt != nil {\n\t\treturn vtNano()\n\t}\n"),
    # Keeps Go's time.now under another name. It is assembly on amd64 and Go code elsewhere.
    Edit("runtime/timeasm.go", "//go:linkname time_now time.now\nfunc time_now()", "func vtRealNow()"),
    Edit("runtime/timestub.go", "//go:linkname time_now time.now\nfunc time_now()", "func vtRealNow()"),
    Edit("runtime/time_linux_amd64.s", "TEXT time·now<ABIInternal>(SB)", "TEXT ·vtRealNow<ABIInternal>(SB)"),
    # Waits between threads, such as stopping the world, stay in real time.
    Edit("runtime/lock_futex.go", "\tdeadline := nanotime() + ns\n", "\tdeadline := nanotime1() + ns\n"),
    Edit("runtime/lock_futex.go", "\t\tnow := nanotime()\n", "\t\tnow := nanotime1()\n"),
)

_IDLENESS = (
    Edit(
        "runtime/netpoll_epoll.go",
        "(epfd, events[:], int32(len(events)), waitms)\n",
        "(epfd, events[:], int32(len(events)), vtBeforePolling(waitms))\n"
        "\tn, errno = vtAfterPolling(events[:], n, errno)\n",
    ),
    _before(
        "runtime/netpoll_epoll.go",
        '\tif errno != 0 {\n\t\tprintln("runtime: eventfd failed with"',
        "\tefd, errno = vtPollerFd(efd, errno)\n",
    ),
    Edit(
        "runtime/proc.go",
        "(netpollAnyWaiters() || pollUntil != 0) && sched.lastpoll.Swap(0) != 0 {\n",
        "(netpollAnyWaiters() || pollUntil != 0 || vt != nil) && sched.lastpoll.Swap(0) != 0 {\n",
    ),
    Edit(
        "runtime/proc.go",
        "\t\tlist, delta := netpoll(delay) // block until new work is available\n",
        "\t\tlist, delta := vtPoll(delay, allpSnapshot) // block until new work is available\n",
    ),
    Edit(
        "runtime/proc.go",
        "\t\t\tinjectglist(&list)\n\t\t\tnetpollAdjustWaiters(delta)\n\t\t} else {\n\t\t\tacquirep(pp)\n",
        "\t\t\tinjectglist(&list)\n\t\t\tnetpollAdjustWaiters(delta)\n\t\t\tvtLanded()\n"
        "\t\t} else {\n\t\t\tacquirep(pp)\n\t\t\tvtLanded()\n",
    ),
    _after("runtime/proc.go", "\tsched.npidle.Add(1)\n", "\tvtLastIdle()\n"),
)

_STARTUP = (
    _before("runtime/proc.go", "\tlockInit(&sched.lock, lockRankSched)\n", "\tvtInit()\n"),
    _before("runtime/proc.go", "\tgcinit()\n", "\tvtConfigure()\n"),
    _after("runtime/proc.go", "\tgcenable()\n", "\tvtStart()\n"),
    _after("runtime/proc.go", "func procresize(nprocs int32) *p {\n", "\tnprocs = vtProcs(nprocs)\n"),
    # sysmon only deals with real time: it retakes Ps from slow system calls, polls, and forces collections.
    Edit("runtime/proc.go", "\tif haveSysmon {\n", "\tif haveSysmon && vt == nil {\n"),
    _after(
        "runtime/mgc.go",
        "func (t gcTrigger) test() bool {\n",
        "\tif !vtMayCollect(t.kind) {\n\t\treturn false\n\t}\n",
    ),
    _after("runtime/proc.go", "func execute(gp *g, inheritTime bool) {\n", "\tvtTurn()\n"),
    # A program that splits its work by this number would behave differently on another machine.
    _after("runtime/debug.go", "func NumCPU() int {\n", "\tif vtSeeded {\n\t\treturn 1\n\t}\n"),
    # The amount of memory released after a collection differs slightly between runs. In steps with a timer after each,
    # it would change the number of turns among the program's goroutines; at once, it always takes one turn.
    Edit(
        "runtime/mgcscavenge.go",
        "\t\tscavenger.sleep(workTime)\n",
        "\t\tif !vtSeeded {\n\t\t\tscavenger.sleep(workTime)\n\t\t}\n",
    ),
)

_RANDOMNESS = (
    _before("runtime/rand.go", "\tglobalRand.state.Init(*seed)\n", "\tvtSeed(seed)\n"),
    _before(
        "runtime/rand.go",
        "\tmp := getg().m\n\tc := &mp.chacha8\n",
        "\tif vtSeeded {\n\t\treturn vtRandom()\n\t}\n",
    ),
    # The number of threads depends on real time, so a new one must not draw a random number.
    _after("runtime/rand.go", "func mrandinit(mp *m) {\n", "\tif vtSeeded {\n\t\treturn\n\t}\n"),
    Edit("runtime/select.go", "cheaprandn(uint32(norder + 1))", "vtSelectOrder(uint32(norder + 1))"),
    _after(
        "runtime/vgetrandom_linux.go",
        "func vgetrandom(p []byte, flags uint32) (ret int, supported bool) {\n",
        "\tif vtSeeded {\n\t\tvtRandomBytes(p)\n\t\treturn len(p), true\n\t}\n",
    ),
)

_NETWORK = (
    _after("internal/poll/fd_mutex.go", "func (fd *FD) writeLock() error {\n", "\tfd.vtTouch()\n"),
    _after("internal/poll/fd_unix.go", "type FD struct {\n", "\tvtPort uint16\n\n"),
    _after("internal/poll/fd_unix.go", "func (fd *FD) Close() error {\n", "\tfd.vtClose()\n"),
    _after("internal/poll/fd_posix.go", "func (fd *FD) Shutdown(how int) error {\n", "\tfd.vtTouch()\n"),
    _after("internal/poll/fd_unix.go", "n, err := ignoringEINTRIO(syscall.Read, fd.Sysfd, p)\n", "\t\tfd.vtGot(n)\n"),
    _after(
        "internal/poll/fd_unix.go",
        "n, err := ignoringEINTRIO(syscall.Write, fd.Sysfd, p[nn:max])\n",
        "\t\tfd.vtSent(n)\n\t\tif err == syscall.EAGAIN && fd.vtMayWrite() {\n\t\t\tcontinue\n\t\t}\n",
    ),
    _after("internal/poll/writev.go", "\t\tTestHookDidWritev(int(wrote))\n", "\t\tfd.vtSent(int(wrote))\n"),
    _after(
        "internal/poll/writev.go",
        "\t\t\tif err == syscall.EAGAIN {\n",
        "\t\t\t\tif fd.vtMayWrite() {\n\t\t\t\t\tcontinue\n\t\t\t\t}\n",
    ),
    Edit(
        "net/fd_unix.go",
        "\tswitch err := connectFunc(fd.pfd.Sysfd, ra); err {\n",
        "\tswitch err := fd.pfd.VirtualConnect(connectFunc, ra); err {\n",
    ),
)

#: The start of a key look-up in a map, in all files of this folder and any number of times.
MAP_ORDER = Edit(
    "internal/runtime/maps",
    "makeProbeSeq(h1(hash), t.groups.lengthMask)",
    "makeProbeSeq(vtStart(typ.Key, hash), t.groups.lengthMask)",
)

EDITS = _CLOCK + _IDLENESS + _STARTUP + _RANDOMNESS + _NETWORK

#: Up to Go 1.25 the package of raw system calls had another path; go/_std uses the new one.
RAW_SYSCALLS = (
    "internal/runtime/syscall/linux",
    '"internal/runtime/syscall/linux"',
    'linux "internal/runtime/syscall"',
)
