package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// maxKnownDirs bounds the memory of directories that are durable; when it is full it is emptied, and directories are synced once more.
const maxKnownDirs = 4096

// dirSyncs makes names in directories durable. Syncs of one directory that are asked for at the same time share one call, because all
// tasks of a process write into the directory of the same checkpoint at the same moment.
type dirSyncs struct {
	syncDir func(dir string) error
	mu      struct {
		sync.Mutex
		running map[string]*syncCall // per directory, the latest call that has begun
		pending map[string]*syncCall // per directory, the call that will begin after it
		known   map[string]bool      // directories whose own names are durable up to the root
	}
}

type syncCall struct {
	done chan struct{} // closed when err is set
	err  error
}

func newDirSyncs(syncDir func(dir string) error) *dirSyncs {
	d := &dirSyncs{syncDir: syncDir}
	d.mu.running, d.mu.pending, d.mu.known = map[string]*syncCall{}, map[string]*syncCall{}, map[string]bool{}
	return d
}

// sync returns when a sync of dir has ended that began after the call.
func (d *dirSyncs) sync(dir string) error {
	d.mu.Lock()
	if c := d.mu.pending[dir]; c != nil {
		d.mu.Unlock()
		<-c.done
		return c.err
	}
	before := d.mu.running[dir]
	c := &syncCall{done: make(chan struct{})}
	d.mu.pending[dir] = c
	d.mu.Unlock()
	if before != nil {
		<-before.done
	}
	d.mu.Lock()
	delete(d.mu.pending, dir)
	d.mu.running[dir] = c
	d.mu.Unlock()
	c.err = d.syncDir(dir)
	close(c.done)
	d.mu.Lock()
	if d.mu.running[dir] == c {
		delete(d.mu.running, dir)
	}
	d.mu.Unlock()
	return c.err
}

// mkdirAll makes dir and its parents below root, and makes their names durable. A directory that exists may have been made by somebody
// who has not synced it yet, so its parent is synced too, once per directory.
func (d *dirSyncs) mkdirAll(root, dir string) error {
	if dir == root || dir == filepath.Dir(dir) || d.isKnown(dir) {
		return nil
	}
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.mkdirAll(root, filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o755)
	}
	exists := errors.Is(err, fs.ErrExist) || err != nil && isDir(dir)
	if err != nil && !exists {
		return err
	}
	if exists && !isDir(dir) {
		return fmt.Errorf("%s is a file and not a directory", dir)
	}
	if exists && root == "/" {
		// Above the root, a directory that is there was not made by this program, and may not even be readable.
		d.remember(dir)
		return nil
	}
	if err := d.mkdirAll(root, filepath.Dir(dir)); err != nil {
		return err
	}
	if err := d.sync(filepath.Dir(dir)); err != nil {
		return err
	}
	d.remember(dir)
	return nil
}

func (d *dirSyncs) isKnown(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.known[dir]
}

func (d *dirSyncs) remember(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.mu.known) >= maxKnownDirs {
		clear(d.mu.known)
	}
	d.mu.known[dir] = true
}

// forget drops what is known of dir and everything below it.
func (d *dirSyncs) forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k := range d.mu.known {
		if k == dir || strings.HasPrefix(k, dir+string(filepath.Separator)) {
			delete(d.mu.known, k)
		}
	}
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
