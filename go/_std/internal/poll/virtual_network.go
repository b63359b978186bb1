// Virtual time: Batkube's counts of what a program does to its connections. A
// program whose clock is granted a stretch of time may use it up by itself only
// while nobody else can have noticed it; and time stands still while bytes are
// on their way.

package poll

import "syscall"

// These are in runtime/virtual_network.go.
func vtTouched()
func vtConnecting()
func vtConnected(fd int32) bool
func vtMoved(sent, got int)

func (fd *FD) vtTouch() {
	if !fd.isFile {
		vtTouched()
	}
}

func (fd *FD) vtSent(n int) {
	if n > 0 && fd.IsStream && !fd.isFile {
		vtMoved(n, 0)
	}
}

func (fd *FD) vtGot(n int) {
	if n > 0 && fd.IsStream && !fd.isFile {
		vtMoved(0, n)
	}
}

// VirtualConnect wraps connect(2). In a deterministic program the connection
// stands or has failed when it returns: how long the kernel takes must not
// decide what runs next.
func (fd *FD) VirtualConnect(connect func(int, syscall.Sockaddr) error, to syscall.Sockaddr) error {
	vtTouched()
	if fd.IsStream {
		vtConnecting()
	}
	err := connect(fd.Sysfd, to)
	if err == syscall.EINPROGRESS && vtConnected(int32(fd.Sysfd)) {
		return connect(fd.Sysfd, to)
	}
	return err
}
