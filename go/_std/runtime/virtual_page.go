// Virtual time for unmodified programs: the page shared with the coordinator.
//
// The files virtual_*.go belong to Batkube. They are added to package runtime at
// build time (go build -overlay), together with a few edits to Go's files, which
// call them. A program that is built this way behaves as usual unless it is
// started with BATKUBE_PAGE in its environment. It then reads the clock from that
// page, and reports on the page when it is idle until the clock advances.
package runtime

import (
	"internal/runtime/atomic"
	"internal/runtime/maps"
	"unsafe"
)

// vtPage is the layout of the page: slots of eight bytes, little-endian. The
// coordinator's side is batkube/timing/pages/clock_page.py;
// docs/reference/schedulers.md describes the slots.
type vtPage struct {
	magic   uint64        // 0: vtMagic
	now     atomic.Int64  // 1: virtual Unix time in ns
	probe   atomic.Uint64 // 2: number of the coordinator's latest probe
	limit   atomic.Int64  // 3: we may advance the clock to timers before this; 0: we may not
	flags   atomic.Uint32 // 4: vtDeterministic, vtCollectNow
	_       uint32
	seed    uint64        // 5
	flood   atomic.Uint64 // 6: bytes of garbage after which a busy program collects; 0: never
	_       uint64
	seen    atomic.Uint64 // 8: the probe that the latest idle report answers
	next    atomic.Int64  // 9: next timer at the time of that report, vtNever if there is none
	idles   atomic.Uint64 // 10: number of idle reports
	wrote   atomic.Uint64 // 11: number of writes to connections, connects and closes started
	jumps   atomic.Uint64 // 12: number of times that we advanced the clock
	heap    atomic.Uint64 // 13: bytes of heap in use after the latest collection
	granted atomic.Uint64 // 14: limit is valid while wrote has this value
	begun   atomic.Int64  // 15: number of connections to the run's server started
	sent    atomic.Int64  // 16: bytes written to the run's server
	got     atomic.Int64  // 17: bytes read from the run's server
	live    atomic.Uint64 // 18: bytes of heap in use at the latest idle report
	pid     atomic.Uint64 // 19: the process that owns the page
	_       [3]uint64

	elsewhere atomic.Uint64 // 23: number of stream connections to other peers started
	port      uint64        // 24: port of the run's server on the loopback interface
	_         [4]uint64
	foreign   atomic.Int64  // 29: bytes read from stream connections to other peers
	arriving  atomic.Uint64 // 30: the announced piece: local port (16 bits), number (8), total bytes sent to it (40)
	opened    atomic.Uint64 // 31: number of connections to the run's server established
	_         [8160]uint64

	ports [vtRecorded]uint16 // from byte 65536: the local ports of the latest of these connections, by number
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
	// vt is the page; nil on real time.
	vt *vtPage
	// vtSeeded is set in deterministic mode.
	vtSeeded bool
	// vtEpoch is the Unix time at which nanotime is zero. Monotonic time is
	// small, as on a machine that has just booted.
	vtEpoch int64

	vtWakeFd int32
	vtIdleFd int32
)

// vtInit maps the page. It is the first step of schedinit, before memory and
// environment are set up, so that the program never reads real time, and even
// its first random number is ours.
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
		return // the variable is inherited: the page belongs to the parent process
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

// vtConfigure overrides GODEBUG and the defaults.
func vtConfigure() {
	if vtSeeded {
		debug.asyncpreemptoff = 1 // preemption signals arrive in real time
		debug.gcstoptheworld = 2  // mark and sweep in one step, without background work
	}
}

// vtProcs returns the number of Ps. Only with a single P does the program alone
// determine the order of goroutines.
func vtProcs(n int32) int32 {
	if vtSeeded {
		return 1
	}
	return n
}

// vtEnv returns the value of an environment variable (prefix is its name and
// "="). It reads the kernel's environment block, because goenvs has not run yet.
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
