// Virtual time for unmodified programs: the page shared with the coordinator.
//
// The files virtual_*.go are Batkube's own. They join package runtime at build
// time (go build -overlay); a few lines of Go's own files are changed to call
// them. A program built so behaves as always until it is started with
// BATKUBE_PAGE in its environment. Then it reads the clock from that page, and
// says there when nothing is left to do before the clock moves.
package runtime

import (
	"internal/runtime/atomic"
	"internal/runtime/maps"
	"unsafe"
)

// vtPage is the layout of the page: slots of eight bytes, little-endian. The
// other side is batkube/timing/pages/clock_page.py; the slots are described in
// docs/reference/schedulers.md.
type vtPage struct {
	magic   uint64        // 0: vtMagic
	now     atomic.Int64  // 1: virtual Unix time in ns
	probe   atomic.Uint64 // 2: number of the coordinator's latest question
	limit   atomic.Int64  // 3: the clock may be moved from timer to timer below this; 0: not at all
	flags   atomic.Uint32 // 4: vtDeterministic, vtCollectNow
	_       uint32
	seed    uint64        // 5
	flood   atomic.Uint64 // 6: garbage that a busy program collects; 0: none does
	_       uint64
	seen    atomic.Uint64 // 8: the question that the latest report answers
	next    atomic.Int64  // 9: next timer at that moment, vtNever if there is none
	idles   atomic.Uint64 // 10: number of reports
	wrote   atomic.Uint64 // 11: number of writes to connections, connects and closes begun
	jumps   atomic.Uint64 // 12: number of times that we moved the clock
	heap    atomic.Uint64 // 13: bytes of heap in use after the latest collection
	granted atomic.Uint64 // 14: limit holds while wrote has this value
	begun   atomic.Int64  // 15: number of connections to the run's server begun
	sent    atomic.Int64  // 16: bytes written to them
	got     atomic.Int64  // 17: bytes read from them
	live    atomic.Uint64 // 18: bytes of heap in use at the latest report
	pid     atomic.Uint64 // 19: the process that the page belongs to
	_       [3]uint64

	elsewhere atomic.Uint64 // 23: number of stream connections to others begun
	port      uint64        // 24: where the run's server listens, on the loopback
	_         [4]uint64
	foreign   atomic.Int64  // 29: bytes read from stream connections to others
	arriving  atomic.Uint64 // 30: the piece that the server sends: local port (16 bits), number (8), bytes ever sent to it (40)
	opened    atomic.Uint64 // 31: number of connections to the run's server made
	_         [8160]uint64

	ports [vtRecorded]uint16 // byte 65536 on: the local ports of the latest of them, each at its number
}

const (
	vtMagic = 0x334b4256 // "VBK3"
	vtBytes = 65536 + 2*vtRecorded
	vtNever = 1<<63 - 1

	vtRecorded = 1 << 14

	vtDeterministic = 1 << 0
	vtCollectNow    = 1 << 1
)

var (
	// vt is nil in a program that runs on real time.
	vt *vtPage
	// vtSeeded says that the program is to take the same course every time.
	vtSeeded bool
	// vtEpoch is the Unix time at which nanotime is zero: monotonic time stays
	// small, as on a machine that was switched on a moment ago.
	vtEpoch int64

	vtWakeFd int32
	vtIdleFd int32
)

// vtInit maps the page. It runs before everything else in schedinit, when
// neither memory nor environment are set up, so that the program never sees
// real time and its first random number is ours already.
func vtInit() {
	path := vtEnv("BATKUBE_PAGE=")
	if path == nil {
		return
	}
	const readWrite, shared, setFlags, closeOnExec = 2, 1, 2, 1
	fd := open(path, readWrite, 0)
	if fd < 0 {
		vtRefuse("the page named by BATKUBE_PAGE cannot be opened")
	}
	mapped, errno := mmap(nil, vtBytes, _PROT_READ|_PROT_WRITE, shared, fd, 0)
	closefd(fd)
	if errno != 0 {
		vtRefuse("the page named by BATKUBE_PAGE cannot be mapped")
	}
	page := (*vtPage)(mapped)
	if page.magic != vtMagic {
		vtRefuse("the file named by BATKUBE_PAGE is not a page of this version of Batkube; rebuild the program")
	}
	if own := uint64(getpid()); !page.pid.CompareAndSwap(0, own) && page.pid.Load() != own {
		return // inherited from the program that this one was started by: the page is that one's
	}
	vtWakeFd, vtIdleFd = vtEnvInt("BATKUBE_WAKE="), vtEnvInt("BATKUBE_IDLE=")
	for _, fd := range [...]int32{vtWakeFd, vtIdleFd} {
		if ret, _ := fcntl(fd, setFlags, closeOnExec); ret < 0 {
			vtRefuse("BATKUBE_WAKE and BATKUBE_IDLE must name open eventfds")
		}
	}
	vtSeeded = page.flags.Load()&vtDeterministic != 0
	maps.VirtualOrder = vtSeeded
	vtRandomState.Store(page.seed)
	vtEpoch = page.now.Load() - 1e9
	vt = page
}

// vtConfigure overrides what GODEBUG and the defaults said.
func vtConfigure() {
	if vtSeeded {
		debug.asyncpreemptoff = 1 // a signal arrives at a real moment
		debug.gcstoptheworld = 2  // mark and sweep in one go: no background work left over
	}
}

// vtProcs returns the number of Ps to run with: only with a single one is the
// order of goroutines a function of the program.
func vtProcs(n int32) int32 {
	if vtSeeded {
		return 1
	}
	return n
}

// vtEnv returns the value of an environment variable (given with its "="),
// from the block that the kernel passed: goenvs has not run yet.
func vtEnv(prefix string) *byte {
	for i := argc + 1; argv_index(argv, i) != nil; i++ {
		entry := argv_index(argv, i)
		text := unsafe.String(entry, findnull(entry))
		if len(text) > len(prefix) && text[:len(prefix)] == prefix {
			return unsafe.StringData(text[len(prefix):])
		}
	}
	return nil
}

func vtEnvInt(prefix string) int32 {
	value := vtEnv(prefix)
	if value == nil {
		return -1
	}
	number := int32(0)
	for _, digit := range []byte(unsafe.String(value, findnull(value))) {
		if digit < '0' || digit > '9' {
			return -1
		}
		number = number*10 + int32(digit-'0')
	}
	return number
}

func vtRefuse(problem string) {
	println("batkube:", problem)
	exit(2)
}
