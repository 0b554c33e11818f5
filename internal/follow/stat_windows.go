package follow

import (
	"os"

	"golang.org/x/sys/windows"
)

// sysStatPath opens the path for a moment, with no right but to look at its
// attributes and with every right left to others, since only a handle tells a
// file's identity there.
func sysStatPath(path string) (stat, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return stat{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	h, err := windows.CreateFile(name, windows.FILE_READ_ATTRIBUTES,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return stat{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	defer windows.CloseHandle(h)
	return statHandle(h, path)
}

func sysStatFile(f *os.File) (stat, error) { return statHandle(windows.Handle(f.Fd()), f.Name()) }

func statHandle(h windows.Handle, path string) (stat, error) {
	var x windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &x); err != nil {
		return stat{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	s := stat{
		id: ident{Dev: uint64(x.VolumeSerialNumber), Ino: uint64(x.FileIndexHigh)<<32 | uint64(x.FileIndexLow),
			Birth: x.CreationTime.Nanoseconds()},
		size:    int64(x.FileSizeHigh)<<32 | int64(x.FileSizeLow),
		mtime:   x.LastWriteTime.Nanoseconds(),
		links:   x.NumberOfLinks,
		dir:     x.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0,
		regular: x.FileAttributes&(windows.FILE_ATTRIBUTE_DIRECTORY|windows.FILE_ATTRIBUTE_DEVICE) == 0,
	}
	s.alloc, s.ctime = s.size, s.mtime
	return s, nil
}

// nextData is not tried here: a hole is read as the NULs it shows.
func nextData(*os.File, int64) (int64, bool) { return 0, false }
