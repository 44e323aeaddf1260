#!/usr/bin/env python3
"""Writes golden npy and npz files with NumPy to a directory.

make_golden.py DIR          files, their values as raw dumps, and two lists:
    manifest  file samples nobjects nsamples field dtype raw ndim dims...
    refused   file format text-that-the-message-contains
A dump contains all samples in order: little-endian, C order.
"""
import io
import os
import sys
import zipfile

import numpy as np

DTYPES = ['bool', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32',
          'int64', 'uint64', 'float16', 'float32', 'float64', 'longdouble',
          'complex64', 'complex128', 'clongdouble']
SHAPES = [(), (0,), (0, 3), (1,), (5,), (3, 4), (1, 6), (4, 1, 3), (2, 3, 4),
          (2, 3, 2, 2)]
BIG = [(70, 33), (5, 41, 67), (3, 2, 35, 2, 4)]
rng = np.random.default_rng(7)
lines, refused = [], []


def array(dtype, shape, swapped=False, fortran=False):
    """Random bytes of a dtype; bit patterns are kept, NaN or not."""
    dt = np.dtype(dtype)
    n = int(np.prod(shape, dtype=np.int64))
    raw = np.frombuffer(rng.bytes(n * dt.itemsize), np.uint8)
    if dt == np.bool_:
        raw = raw & 1
    a = raw.copy().view(dt).reshape(shape)
    if swapped and dt.itemsize > 1:
        a = a.view(dt.newbyteorder('>'))
    if fortran:
        b = np.empty(shape, a.dtype, order='F')
        b[...] = a
        a = b
    return a


def plain_bytes(a):
    """Little-endian, C order."""
    c = np.ascontiguousarray(a)
    if c.dtype.byteorder == '>':
        c = c.byteswap()
    return c.tobytes()


def expect(out, name, mode, field, a, option=None, nobjects=2):
    """One line of the manifest and one dump; option: value of samples=."""
    option = option or mode
    b = a if mode != 'last' else np.moveaxis(a, -1, 0)
    nsamples = 1 if mode == 'file' else b.shape[0]
    shape = b.shape if mode == 'file' else b.shape[1:]
    raw = '%s.%s%d.%s.raw' % (name, option, nobjects, field.replace('/', '_'))
    with open(os.path.join(out, raw), 'wb') as f:
        f.write(plain_bytes(b))
    dtype = {'longdouble': 'float128', 'clongdouble': 'complex256'}.get(
        a.dtype.name, a.dtype.name)
    lines.append(' '.join(map(str, [name, option, nobjects, nsamples, field,
                                    dtype, raw, len(shape), *shape])))


def modes(a):
    yield 'file'
    if a.ndim and (a.size or a.shape[0] == 0):
        yield 'first'
    if a.ndim and (a.size or a.shape[-1] == 0):
        yield 'last'


def npy(out, name, a, version=None):
    with open(os.path.join(out, name), 'wb') as f:
        np.lib.format.write_array(f, a, version=version)
    for mode in modes(a):
        expect(out, name, mode, 'x', a)


def make_npy(out):
    for dtype in DTYPES:
        for i, shape in enumerate(SHAPES):
            for order in range(4):
                a = array(dtype, shape, order & 1, order & 2)
                npy(out, '%s-%d-%d.npy' % (dtype, i, order), a)
    for dtype in ['uint8', 'int16', 'float32', 'float64', 'complex128',
                  'clongdouble']:
        for i, shape in enumerate(BIG):
            for order in range(4):
                a = array(dtype, shape, order & 1, order & 2)
                npy(out, 'big-%s-%d-%d.npy' % (dtype, i, order), a)
    for version in [(1, 0), (2, 0), (3, 0)]:
        npy(out, 'version-%d.npy' % version[0],
            array('float32', (3, 4)), version)
    npy(out, 'deep.npy', array('int32', (1, 2) * 12))
    a = array('float32', (6, 2))
    npy(out, 'auto.npy', a)
    expect_auto(out, 'auto.npy', a)


def expect_auto(out, name, a):
    """auto: along the first axis of a single file, else the file"""
    expect(out, name, 'file', 'x', a, 'auto', 2)
    expect(out, name, 'first', 'x', a, 'auto', 1)


def header(text, version=1, pad=True):
    t = text.encode('latin1')
    n = 10 if version == 1 else 12
    if pad:
        t += b' ' * (63 - (n + len(t)) % 64) + b'\n'
    size = len(t).to_bytes(2 if version == 1 else 4, 'little')
    return b'\x93NUMPY' + bytes([version, 0]) + size + t


def make_odd(out):
    """Valid headers that current NumPy does not write."""
    a = array('int16', (2, 3))
    odd = {
        'quotes': '{"descr": "<i2", "fortran_order": False, "shape": (2, 3)}',
        'order': "{'shape': (2, 3), 'fortran_order': False, 'descr': '<i2'}",
        'long': "{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 3L)}",
        'tight': "{'descr':'<i2','fortran_order':False,'shape':(2,3,),}",
        'code': "{'descr': 'h', 'fortran_order': False, 'shape': (2, 3), }",
        'native': "{'descr': '=i2', 'fortran_order': False, 'shape': (2,3)}",
    }
    for key, text in odd.items():
        name = 'odd-%s.npy' % key
        with open(os.path.join(out, name), 'wb') as f:
            f.write(header(text) + a.tobytes())
        expect(out, name, 'file', 'x', a)
    name = 'odd-wide.npy'  # a header longer than the first read
    with open(os.path.join(out, name), 'wb') as f:
        f.write(header(odd['tight'] + ' ' * 3000, 2) + a.tobytes())
    expect(out, name, 'first', 'x', a)


class Unseekable(io.RawIOBase):
    """A stream, for which zipfile writes data descriptors (bit 3)."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def writable(self):
        return True

    def write(self, b):
        return self.f.write(b)


def npz(out, name, arrays, how='stored', comment=b'', extra=False):
    path = os.path.join(out, name)
    method = zipfile.ZIP_STORED if how == 'stored' else zipfile.ZIP_DEFLATED
    with open(path, 'wb') as f:
        target = Unseekable(f) if how == 'stream' else f
        with zipfile.ZipFile(target, 'w', method) as z:
            z.comment = comment
            if extra:
                z.writestr('README', 'not an array')
            for key, a in arrays.items():
                with z.open(key + '.npy', 'w', force_zip64=True) as m:
                    np.lib.format.write_array(m, a, allow_pickle=True)


def expect_npz(out, name, arrays, wanted):
    for mode in wanted:
        for key, a in arrays.items():
            expect(out, name, mode, key, a)


def make_npz(out):
    table = {'x': array('float32', (6, 4, 3)), 'y': array('int64', (6,)),
             'w': array('float64', (6, 2), True),
             'v': array('uint16', (6, 5), False, True)}
    # compressible, and long enough for several deflate blocks
    table['z'] = np.arange(6 * 20000, dtype='<i4').reshape(6, 20000)
    dlio = {'x': array('uint8', (5, 7, 4)), 'y': array('int64', (4,))}
    mixed = {'a': array('bool', ()), 'b': array('complex64', (2, 2), True),
             'c': array('longdouble', (0, 2)), 'd/e': array('int8', (3,))}
    for how in ['stored', 'deflated', 'stream']:
        npz(out, 'table-%s.npz' % how, table, how)
        expect_npz(out, 'table-%s.npz' % how, table, ['file', 'first'])
        npz(out, 'dlio-%s.npz' % how, dlio, how)
        expect_npz(out, 'dlio-%s.npz' % how, dlio, ['last'])
        npz(out, 'mixed-%s.npz' % how, mixed, how)
        expect_npz(out, 'mixed-%s.npz' % how, mixed, ['file'])
        for key in mixed:
            one = {key: mixed[key]}
            name = 'one-%s-%s.npz' % (key[0], how)
            npz(out, name, one, how)
            expect_npz(out, name, one, ['file'])
    same = {'x': table['x'], 'y': table['y']}
    npz(out, 'auto.npz', same)
    npz(out, 'auto-none.npz', dlio)
    for key in same:
        expect(out, 'auto.npz', 'file', key, same[key], 'auto', 2)
        expect(out, 'auto.npz', 'first', key, same[key], 'auto', 1)
        expect(out, 'auto-none.npz', 'file', key, dlio[key], 'auto', 1)
    npz(out, 'comment.npz', dlio, 'stored', b'PK\5\6' * 9000, True)
    expect_npz(out, 'comment.npz', dlio, ['last'])
    limit, count = zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT
    zipfile.ZIP64_LIMIT = zipfile.ZIP_FILECOUNT_LIMIT = 1
    npz(out, 'zip64.npz', dlio, 'stored')
    npz(out, 'zip64-deflated.npz', dlio, 'deflated', b'comment')
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = limit, count
    expect_npz(out, 'zip64.npz', dlio, ['last'])
    expect_npz(out, 'zip64-deflated.npz', dlio, ['last'])
    # members that are not numeric are skipped
    npz(out, 'left-out.npz', dict(dlio, s=np.array(['a', 'bc']),
                                  o=np.array([{}, 1], object)))
    npz(out, 'left-out-c.npz', dict(dlio, s=np.array(['a', 'bc'])), 'deflated')
    expect_npz(out, 'left-out.npz', dlio, ['last'])
    expect_npz(out, 'left-out-c.npz', dlio, ['last'])
    np.savez(os.path.join(out, 'savez.npz'), **dlio)
    expect_npz(out, 'savez.npz', dlio, ['last'])
    np.savez_compressed(os.path.join(out, 'savez-c.npz'), **dlio)
    expect_npz(out, 'savez-c.npz', dlio, ['last'])


def refuse(out, name, data, text):
    with open(os.path.join(out, name), 'wb') as f:
        f.write(data)
    refused.append('%s %s %s' % (name, name.rsplit('.', 1)[1], text))


def saved(a):
    b = io.BytesIO()
    np.lib.format.write_array(b, a, allow_pickle=True)
    return b.getvalue()


def zipped(method, names=('x.npy',)):
    b = io.BytesIO()
    with zipfile.ZipFile(b, 'w', method) as z:
        for n in names:
            z.writestr(n, saved(np.arange(9)))
    return b.getvalue()


def make_refused(out):
    good = saved(np.arange(12, dtype='f4').reshape(3, 4))
    bad = {
        'object': (saved(np.array([{}], object)), 'pickle'),
        'string': (saved(np.array(['ab'])), 'Unicode'),
        'bytes': (saved(np.array([b'ab'])), 'byte strings'),
        'void': (saved(np.zeros(2, 'V3')), 'void'),
        'date': (saved(np.array(['2020-01-01'], 'M8[D]')), 'datetime64'),
        'delta': (saved(np.zeros(2, 'm8[s]')), 'timedelta64'),
        'record': (saved(np.zeros(2, [('a', 'i4'), ('b', 'f4')])),
                   'structured'),
        'short': (good[:-5], '5 of 48 data bytes are missing'),
        'long': (good + b'1234567', '7 bytes follow the array'),
        'magic': (b'\x92' + good[1:], r"it starts with '\x92NUMPY\x01\x00' "
                  r"instead of '\x93NUMPY'"),
        'version': (good[:6] + b'\x04' + good[7:], 'version 4.0'),
        'empty': (b'', 'not an npy file'),
        'huge': (header("{'descr': '<f8', 'fortran_order': False, 'shape': "
                        "(4294967296, 4294967296)}"), 'overflows'),
        'negative': (header("{'descr': '<f8', 'fortran_order': False, "
                            "'shape': (-1,)}"),
                     "expected a length in 'shape', found '-1,)}"),
        'number': (header("{'descr': '<f8', 'fortran_order': False, "
                          "'shape': (1)}") + bytes(8), 'not a tuple'),
        'key': (header("{'descr': '<f8', 'fortran_order': False, "
                       "'shape': (1,), 'x': 1}") + bytes(8), "unknown key 'x'"),
        'twice': (header("{'descr': '<f8', 'descr': '<f8', "
                         "'fortran_order': False, 'shape': (1,)}"), 'twice'),
        'lacks': (header("{'descr': '<f8', 'shape': (1,)}"), 'is missing'),
        'code': (header("{'descr': '<q9', 'fortran_order': False, "
                        "'shape': (1,)}"), "unknown dtype '<q9'"),
        'after': (header("{'descr': '<f8', 'fortran_order': False, "
                         "'shape': (1,)} + 1"),
                  "expected the end of the header, found '+ 1"),
        'deep': (header("{'descr': '<f8', 'fortran_order': False, "
                        "'shape': (%s)}" % ('1,' * 33)), '32 axes'),
        'escape': (header("{'descr': '\\x3cf8', 'fortran_order': False, "
                          "'shape': (1,)}"), "expected a string for 'descr'"),
    }
    for key, (data, text) in bad.items():
        refuse(out, 'bad-%s.npy' % key, data, text)
    stored = zipped(zipfile.ZIP_STORED)
    enc = bytearray(stored)
    enc[6] |= 1
    enc[stored.rindex(b'PK\1\2') + 8] |= 1
    two = bytearray(zipped(zipfile.ZIP_STORED, ('x.npy', 'y.npy')))
    at = two.rindex(b'PK\1\2')
    two[at + 42:at + 46] = bytes(4)  # header of y at that of x
    b = io.BytesIO()
    with zipfile.ZipFile(b, 'w') as z:  # shorter than one read
        z.writestr('x.npy', b'1')
        z.writestr('y.npy', b'2')
    far = bytearray(b.getvalue())
    at = far.rindex(b'PK\1\2')
    far[at + 42:at + 46] = b'\0\0\1\0'  # header of y beyond the end
    b = io.BytesIO()
    with zipfile.ZipFile(b, 'w') as z:
        z.writestr('s.npy', saved(np.array(['ab'])))
    more = {
        'bzip2': (zipped(zipfile.ZIP_BZIP2), 'bzip2'),
        'lzma': (zipped(zipfile.ZIP_LZMA), 'lzma'),
        'encrypted': (bytes(enc), 'encrypted'),
        'truncated': (stored[:-1], 'has no end record'),
        'overlap': (bytes(two), 'overlap'),
        'outside': (bytes(far), 'starts after the directory'),
        'numeric': (b.getvalue(), 'none of the 1 arrays is numeric'),
        'nothing': (zipped(zipfile.ZIP_STORED, ('readme',)), 'no .npy'),
        'empty': (zipped(zipfile.ZIP_STORED, ()), 'is empty'),
        'bytes': (b'', "not a zip archive, or truncated: it starts "
                  "with '' and"),
        'other': (b'\x1f\x8b\x08' + bytes(99), r"starts with '\x1f\x8b\x08\x00"),
    }
    for key, (data, text) in more.items():
        refuse(out, 'bad-%s.npz' % key, data, text)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    make_npy(out)
    make_odd(out)
    make_npz(out)
    make_refused(out)
    for name, content in [('manifest', lines), ('refused', refused)]:
        with open(os.path.join(out, name), 'w') as f:
            f.write('\n'.join(content) + '\n')


if __name__ == '__main__':
    main()
