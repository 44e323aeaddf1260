#!/usr/bin/python3
"""Generated and mutated files, read by Penstock and by another program:

    DUMP=build/dev/tests/fuzz/fuzz_dump differential.py ORACLE [COUNT [SEED]]

ORACLE: npy (NumPy), zip (Python's zipfile), png (Pillow), csv (Python's csv),
hdf5 (libhdf5 through h5py, in a child process, which damaged files may kill).
If both accept a file, they must read the same. Where only one accepts it, the
reason must be one of those below, which docs/reliability.md lists.
"""
import csv
import io
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import zipfile
import warnings
import zlib

try:
    import numpy as np
    from PIL import Image
    import h5py
except ImportError as e:
    print('skipped:', e)
    sys.exit(77)

DTYPES = ['?', 'i1', 'u1', 'i2', 'u2', 'i4', 'u4', 'i8', 'u8', 'f2', 'f4',
          'f8', 'g', 'c8', 'c16', 'G']
rnd = random.Random(1)
warnings.simplefilter('ignore')  # of Pillow, of NumPy: damaged files


class Refused(Exception):
    """Only these words say why."""


# --- Penstock ---

class Dump:
    def __init__(self, *args):
        self.p = subprocess.Popen([os.environ['DUMP'], *args],
                                  stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)

    def read(self, data):
        """A list of (name, array), or Refused."""
        self.p.stdin.write(struct.pack('<I', len(data)) + data)
        self.p.stdin.flush()
        head = self.p.stdout.read(4)
        if len(head) < 4:
            raise SystemExit('fuzz_dump ended: exit code %s' % self.p.wait())
        b = self.p.stdout.read(struct.unpack('<I', head)[0])
        if b[:1] == b'e':
            raise Refused(b[1:].decode('utf-8', 'replace'))
        out, at = [], 1
        while at < len(b):
            name, dtype, ndim = struct.unpack_from('<32sBB', b, at)
            shape = struct.unpack_from('<8q', b, at + 34)[:ndim]
            n, = struct.unpack_from('<I', b, at + 98)
            data = b[at + 102:at + 102 + n]
            at += 102 + n
            name = name.rstrip(b'\0').decode('utf-8', 'replace')
            if dtype == 255:
                raise Refused(data.decode('utf-8', 'replace'))
            out.append((name, np.frombuffer(data, DTYPES[dtype])
                        .reshape(shape or -1)))
        return out


# --- files ---

def mutate(data, repair=None):
    b = bytearray(data)
    for _ in range(rnd.choice([1, 1, 1, 2, 4])):
        if not b:
            break
        how, at = rnd.randrange(8), rnd.randrange(len(b))
        if how < 3:
            b[at] = rnd.choice([0, 1, 255, 127, 128, rnd.randrange(256)])
        elif how < 5:
            b[at] ^= 1 << rnd.randrange(8)
        elif how == 5:
            del b[at:at + rnd.randrange(1, 9)]
        elif how == 6:
            b[at:at] = bytes(b[rnd.randrange(len(b)):][:rnd.randrange(1, 9)])
        else:
            del b[at:]
    if repair and rnd.randrange(4):
        repair(b)
    return bytes(b)


def any_array():
    t = rnd.choice(DTYPES)
    shape = rnd.choice([(), (0,), (3,), (2, 3), (2, 0), (1, 2, 3), (5, 1)])
    n = int(np.prod(shape)) * np.dtype(t).itemsize
    a = np.frombuffer(rnd.randbytes(n), np.uint8)
    a = (a & 1 if t == '?' else a).copy().view(t).reshape(shape)
    if rnd.randrange(3) == 0 and a.dtype.itemsize > 1:
        a = a.astype(a.dtype.newbyteorder('>'))
    return np.asfortranarray(a) if rnd.randrange(3) == 0 else a


def make_npy():
    f = io.BytesIO()
    np.lib.format.write_array(f, any_array(), rnd.choice([(1, 0), (2, 0),
                                                          (3, 0)]))
    return f.getvalue()


def read_npy(data):
    f = io.BytesIO(data)
    a = np.lib.format.read_array(f, allow_pickle=False)
    if f.read(1):
        raise Refused('trailing')
    return [('x', a)]


def make_zip():
    f = io.BytesIO()
    with zipfile.ZipFile(f, 'w') as z:
        for i in range(rnd.randrange(1, 4)):
            how = rnd.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
            with z.open(zipfile.ZipInfo('m%d' % i), 'w', force_zip64=rnd.
                        randrange(4) == 0) if how == zipfile.ZIP_STORED \
                    else io.BytesIO() as m:
                m.write(rnd.randbytes(rnd.randrange(40)))
            if how != zipfile.ZIP_STORED:
                z.writestr('m%d' % i, bytes(rnd.randrange(200)), how)
        z.comment = b'c' * rnd.choice([0, 0, 3])
    return f.getvalue()


def repair_zip(b):
    """The checksums of stored members, in both places."""
    at = b.rfind(b'PK\5\6')
    if at < 0 or at + 20 > len(b):
        return
    at, = struct.unpack_from('<I', b, at + 16)
    while b[at:at + 4] == b'PK\1\2' and at + 46 <= len(b):
        size, = struct.unpack_from('<I', b, at + 20)
        head, = struct.unpack_from('<I', b, at + 42)
        if b[head:head + 4] == b'PK\3\4' and b[at + 10] == 0:
            n, e = struct.unpack_from('<HH', b, head + 26)
            crc = zlib.crc32(b[head + 30 + n + e:][:size])
            struct.pack_into('<I', b, at + 16, crc)
            struct.pack_into('<I', b, head + 14, crc)
        n, e, c = struct.unpack_from('<HHH', b, at + 28)
        at += 46 + n + e + c


def read_zip(data):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        out = [(m.header_offset, m.orig_filename[:32], np.frombuffer(
            z.read(m), np.uint8)) for m in z.infolist()]
    return [(n, a) for _, n, a in sorted(out, key=lambda x: x[0])]


def make_png():
    mode = rnd.choice(['L', 'RGB', 'RGBA', 'LA', 'P', '1', 'I;16'])
    w, h = rnd.randrange(1, 9), rnd.randrange(1, 9)
    n = {'RGB': 3, 'RGBA': 4, 'LA': 2, 'I;16': 2}.get(mode, 1)
    if mode == '1':
        im = Image.new('1', (w, h))
        im.putdata([rnd.randrange(2) * 255 for _ in range(w * h)])
    else:
        im = Image.frombytes(mode, (w, h), rnd.randbytes(w * h * n))
    if mode == 'P':
        im.putpalette(rnd.randbytes(768))
    f = io.BytesIO()
    im.save(f, 'PNG')
    return f.getvalue()


def repair_png(b):
    at = 8
    while at + 12 <= len(b):
        n, = struct.unpack_from('>I', b, at)
        if at + 12 + n > len(b):
            return
        struct.pack_into('>I', b, at + 8 + n,
                         zlib.crc32(b[at + 4:at + 8 + n]))
        at += 12 + n


def read_png(data):
    if data[:8] != b'\x89PNG\r\n\x1a\n':
        raise Refused('not a PNG')
    im = Image.open(io.BytesIO(data))
    im.load()
    if im.width * im.height > 1 << 22:
        raise Refused('large')
    return [('x', im)]


def same_png(ours, theirs):
    a, im = ours[0][1], theirs[0][1]
    if a.shape[:2] != (im.height, im.width):
        return False
    if a.dtype != np.uint8:
        return True  # 16 bits: Pillow has them in one mode only
    mode = {2: 'L', 3: {1: 'L', 2: 'LA', 3: 'RGB', 4: 'RGBA'}
            .get(a.shape[-1])}[a.ndim]
    if im.mode.startswith('I') or mode is None:
        return True
    b = np.asarray(im.convert(mode)).reshape(a.shape)
    return bool((a == b).all())


def make_csv():
    def cell():
        v = rnd.choice(['%d' % rnd.randrange(-999, 999), '1.5', '-2e3', '0',
                        '%.6f' % rnd.random(), ' 7', '+4', '.5', '1e-3'])
        return '"%s"' % v if rnd.randrange(5) == 0 else v
    n = rnd.randrange(1, 5)
    end = rnd.choice(['\n', '\r\n'])
    lines = [','.join(cell() for _ in range(n))
             for _ in range(rnd.randrange(1, 5))]
    return (end.join(lines) + rnd.choice(['', end])).encode()


def read_csv(data):
    text = data.decode('ascii')
    rows = [r for r in csv.reader(io.StringIO(text, newline=''), strict=True)
            if r]
    if not rows or len({len(r) for r in rows}) != 1:
        raise Refused('rows differ')
    if re.search('[_\0]', text):
        raise Refused('Python only')
    return [('x', np.array([[float(c) for c in r] for r in rows]))]


def same_csv(ours, theirs):
    """Columns, of one field or several; rows, one sample each."""
    want = theirs[0][1]
    flat = [float(v) for _, a in ours for v in np.asarray(a).ravel()]
    return len(flat) == want.size and \
        np.array_equal(flat, want.ravel(), equal_nan=True)


def make_hdf5():
    f = io.BytesIO()
    with h5py.File(f, 'w', libver=rnd.choice(['earliest', 'latest'])) as h:
        a = any_array()
        while a.dtype.char in 'gGFD?' or a.ndim < 1 or 0 in a.shape:
            a = any_array()
        opts = {}
        if rnd.randrange(2):
            opts = dict(chunks=tuple(max(1, s // 2) for s in a.shape),
                        compression=rnd.choice([None, 'gzip', 'lzf']),
                        shuffle=bool(rnd.randrange(2)),
                        fletcher32=bool(rnd.randrange(2)))
            if rnd.randrange(3) == 0:
                opts['maxshape'] = (None,) + a.shape[1:]
        h.create_dataset('x', data=a, **opts)
        if rnd.randrange(2):
            h.attrs['k'] = 'v'
    return f.getvalue()


CHILD = '''
import io, struct, sys
import h5py, numpy as np
while True:
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        break
    data = sys.stdin.buffer.read(struct.unpack("<I", head)[0])
    try:
        with h5py.File(io.BytesIO(data), "r") as h:
            names = [k for k in h if isinstance(h[k], h5py.Dataset)]
            if names != ["x"]:
                raise ValueError("names")
            d = h["x"]
            if d.size * d.dtype.itemsize > 1 << 20:
                raise ValueError("large")
            a = d[()]
            out = b"o" + repr((a.dtype.str, a.shape)).encode() + b"\\n" + \\
                a.tobytes()
    except Exception as e:
        out = b"e" + repr(e).encode()
    sys.stdout.buffer.write(struct.pack("<I", len(out)) + out)
    sys.stdout.buffer.flush()
'''
child = None
died = 0


def read_hdf5(data):
    global child, died
    if child is None:
        # a sanitizer that was loaded for this program is not for that one
        env = {k: v for k, v in os.environ.items() if k != 'LD_PRELOAD'}
        child = subprocess.Popen([sys.executable, '-c', CHILD], env=env,
                                 stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
    try:
        child.stdin.write(struct.pack('<I', len(data)) + data)
        child.stdin.flush()
    except BrokenPipeError:
        pass
    head = child.stdout.read(4)
    if len(head) < 4:
        child.wait()
        child = None
        died += 1
        raise Refused('libhdf5 crashed')
    b = child.stdout.read(struct.unpack('<I', head)[0])
    if b[:1] == b'e':
        raise Refused(b[1:].decode())
    line, rest = b[1:].split(b'\n', 1)
    dtype, shape = eval(line)  # pylint: disable=eval-used
    return [('x', np.frombuffer(rest, dtype).reshape(shape))]


def same(ours, theirs):
    """Samples along the first axis, or all in one."""
    if len(theirs) == 1 and len(ours) != 1:
        names = {n for n, _ in ours}
        if len(names) > 1:
            return False
        ours = [(theirs[0][0], np.stack([a for _, a in ours])
                 if ours else theirs[0][1])]
    if [n for n, _ in ours] != [n for n, _ in theirs]:
        return False
    for (_, a), (_, b) in zip(ours, theirs):
        b = b.astype(b.dtype.newbyteorder('='))
        if a.size != b.size or a.dtype != b.dtype or \
                a.tobytes() != b.tobytes():
            return False
    return True


# --- oracles ---

ORACLES = {
    'npy': (['npy', 'samples=file'], make_npy, read_npy, same, None, 3000),
    'zip': (['zip'], make_zip, read_zip, same, repair_zip, 4000),
    'png': (['png', 'max_pixels=4M'], make_png, read_png, same_png,
            repair_png, 3000),
    'csv': (['csv', 'header=no', 'dtype=float64'], make_csv, read_csv,
            same_csv, None, 4000),
    'hdf5': (['hdf5', 'samples=file'], make_hdf5, read_hdf5, same, None,
             1500),
}

# Only Penstock refuses: its message.
STRICTER = {
    # NumPy evaluates any Python literal, with any type that it knows
    'npy': ['^npy header: '],
    # values that are stored twice, or are not needed, must be right as well
    'zip': ['different', 'entry is invalid', 'multi-part', 'is empty',
            'not at the offset', 'no end record', 'cannot be inflated',
            'sizes differ', 'overlap', 'header', 'cannot come from',
            'checksum differs', 'larger', 'directory', 'method'],
    # all chunks are checked, and all of the image must be there
    'png': ['^damaged: ', 'too small for an image', 'ends? ', 'pixels'],
    # control characters around numbers; a line that ends in CR only
    'csv': ['is not a valid', 'but the first row has', 'carriage return',
            'NUL'],
    # where structures contradict one another, libhdf5 uses one of them
    'hdf5': ['no numeric data set', 'not in order', 'not supported',
             'larger than', 'shape is invalid', 'element size', 'not aligned',
             'cannot decode to'],
}
# Only Penstock accepts: the other's error.
LOOSER = {
    'npy': [],
    'zip': ['zip file version'],
    'png': [],
    # blanks next to quotes
    'csv': ["expected after '\"'", r"""to float: '\s+".*"\s*'"""],
    # what is not needed to read the data set is not read (the rest of a
    # truncated file, free space, fill values, cached copies), and groups are
    # listed, not searched
    'hdf5': ['truncated file', 'free', 'heap', 'too large', 'crashed',
             'addr overflow', 'past end of allocation', 'fill size',
             'cache type', r"names", 'empty string',
             "doesn't exist", 'unshareable',
             'version', 'flag value'],
}


def known(patterns, text):
    return any(re.search(p, text) for p in patterns)


def main():
    name = sys.argv[1]
    args, make, theirs, equal, repair, count = ORACLES[name]
    if os.environ.get('SANITIZE'):
        count //= 4
    count = int(sys.argv[2]) if len(sys.argv) > 2 else count
    rnd.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    dump = Dump(*args)
    tally = {'both read the same': 0, 'both refuse': 0,
             'only Penstock refuses': 0, 'only Penstock accepts': 0}
    bad, whys = [], {}
    kept = [p.read_bytes() for p in sorted(
        pathlib.Path(__file__).parent.glob('corpus/differs_%s/*' % name))]
    base = make()
    for i in range(count):
        if i % 8 == 0:
            base = make()
        data = base if i % 8 == 0 else mutate(base, repair)
        if kept and i % 8:
            data = kept.pop()
        ours = why = other = None
        try:
            ours = dump.read(data)
        except Refused as e:
            why = str(e)
        try:
            want = theirs(data)
        except Exception as e:  # pylint: disable=broad-except
            want, other = None, '%s: %s' % (type(e).__name__, e)
        if ours is not None and want is not None:
            tally['both read the same'] += 1
            if not equal(ours, want):
                bad.append(('they read different values', data))
        elif ours is None and want is None:
            tally['both refuse'] += 1
        elif ours is None:
            tally['only Penstock refuses'] += 1
            if not known(STRICTER[name], why) or i % 8 == 0:
                bad.append(('only Penstock refuses: ' + why, data))
                whys[why] = whys.get(why, 0) + 1
        else:
            tally['only Penstock accepts'] += 1
            if not known(LOOSER[name], other):
                bad.append(('only Penstock accepts: ' + other, data))
                whys[other] = whys.get(other, 0) + 1
    for what, n in tally.items():
        print('%-24s%8d' % (what, n))
    if died:
        print('%-24s%8d' % ('libhdf5 crashed', died))
    seen = set()
    for what, data in bad:
        short = re.sub(r'\d+', 'N', what)[:70]
        if short in seen:
            continue
        seen.add(short)
        path = 'differs-%s-%d' % (name, len(seen))
        with open(path, 'wb') as f:
            f.write(data)
        print('%s: %s' % (os.path.abspath(path), what))
    if bad:
        print('%d of %d files differ' % (len(bad), count))
    return 1 if bad or not tally['both read the same'] else 0


if __name__ == '__main__':
    sys.exit(main())
