"""Replays what the shim recorded on a model of a disk that loses everything
that was not synced: bytes of a file until fsync() of the file, its name until
fsync() of the directory, both until syncfs()."""
import os


class File:
    def __init__(self):
        self.now = bytearray()      # as programs see it
        self.synced = bytes()

    def write(self, at, data):
        if at > len(self.now):
            self.now.extend(bytes(at - len(self.now)))
        self.now[at:at + len(data)] = data

    def sync(self):
        self.synced = bytes(self.now)


class Disk:
    """The files below a folder that exists, with its content, from the
    start."""
    def __init__(self, top):
        self.top = top
        self.names = {}             # path -> File or None (directory)
        self.kept = {}              # the same, as on the disk
        self.nodes = {}             # inode -> path when opened, File
        self.early = []             # named before their bytes were synced
        for folder, dirs, files in os.walk(top):
            for d in dirs:
                self.names[os.path.join(folder, d)] = None
            for n in files:
                f = File()
                path = os.path.join(folder, n)
                with open(path, "rb") as src:
                    f.now[:] = src.read()
                f.sync()
                self.names[path] = f
                self.nodes[os.stat(path).st_ino] = (path, f)
        self.kept = dict(self.names)

    def inside(self, path):
        return path.startswith(self.top + os.sep) or path == self.top

    def replay(self, data):
        at = 0
        while at < len(data):
            end = data.index(b"\n", at)
            op, *words = data[at:end].decode(errors="replace").split("\t")
            if op in "OC":
                words[1] = os.path.normpath(words[1])
            elif op in "RUM":
                words = [os.path.normpath(w) if w else w for w in words]
            at = end + 1
            if op in "WTSF":
                n = int(words[2])
                self.change(op, int(words[0]), int(words[1]), data[at:at + n])
                at += n + 1
            elif op in "OC":
                self.open(op, int(words[0]), words[1])
            elif self.inside(words[0]):
                self.rename(op, *words)

    def open(self, op, inode, path):
        if not self.inside(path):
            self.nodes.pop(inode, None)
            return
        f = self.names.get(path)
        if path not in self.names and not os.path.isdir(path) and \
                path != self.top:
            f = self.names[path] = File()
        if f and op == "C":
            f.now.clear()
        self.nodes[inode] = (path, f)

    def change(self, op, inode, at, data):
        path, f = self.nodes.get(inode, (None, None))
        if op == "F":
            for g in self.names.values():
                if g:
                    g.sync()
            self.kept = dict(self.names)
        elif path and op == "S" and not f:
            self.sync_names(path)
        elif f and op == "S":
            f.sync()
        elif f and op == "W":
            f.write(at, data)
        elif f and op == "T":
            f.write(at, b"")
            del f.now[at:]

    def sync_names(self, folder):
        """Entries of one directory become as programs see them."""
        for path in {*self.kept, *self.names}:
            if os.path.dirname(path) != folder:
                continue
            if path not in self.names:
                for p in [p for p in self.kept if p == path or
                          p.startswith(path + os.sep)]:
                    del self.kept[p]
            else:
                self.kept[path] = self.names[path]

    def rename(self, op, a, b=""):
        if op == "M":
            self.names[a] = None
        elif op == "U":
            self.names.pop(a, None)
        elif op == "R":
            for p in [p for p in self.names if p == b or
                      p.startswith(b + os.sep)]:
                del self.names[p]
            for p in [p for p in self.names if p == a or
                      p.startswith(a + os.sep)]:
                f = self.names.pop(p)
                self.names[b + p[len(a):]] = f
                if p in self.kept and p != a:   # moved with its directory
                    self.kept[b + p[len(a):]] = self.kept.pop(p)
                if f and f.synced != bytes(f.now):
                    self.early.append(os.path.relpath(b + p[len(a):],
                                                      self.top))

    def durable(self):
        """{name: bytes} of what is left after a power loss."""
        return {os.path.relpath(p, self.top): f.synced
                for p, f in self.kept.items() if f and self.reachable(p)}

    def reachable(self, path):
        path = os.path.dirname(path)
        while path != self.top:
            if path not in self.kept:
                return False
            path = os.path.dirname(path)
        return True
