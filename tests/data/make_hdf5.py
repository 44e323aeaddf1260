#!/usr/bin/env python3
"""Writes golden HDF5 files with h5py to a directory.

make_hdf5.py DIR [ARCHIVE]  files, their values as raw dumps, and lists:
    manifest  file samples nobjects nsamples field dtype raw ndim dims...
    refused   file format text-that-the-message-contains
    tree      file: the groups and attributes found by a walk
A dump contains all samples in order: little-endian, C order. ARCHIVE: a
directory with h5ad files of other anndata versions, also walked.
"""
import ctypes
import glob
import os
import shutil
import struct
import sys
import warnings
import zlib

import anndata
import h5py
import numpy as np
import scipy.sparse

rng = np.random.default_rng(11)
lines, refused = [], []
LIBVERS = ['earliest', 'v108', 'v110', 'latest']


def array(dtype, shape, smooth=False):
    dt = np.dtype(dtype)
    n = int(np.prod(shape, dtype=np.int64))
    if smooth:  # compresses well
        return (np.arange(n) // 7 % 50).astype(dt).reshape(shape)
    raw = np.frombuffer(rng.bytes(n * dt.itemsize), np.uint8)
    if dt == np.bool_:
        raw = raw & 1
    return raw.copy().view(dt).reshape(shape)


def plain_bytes(a):
    c = np.ascontiguousarray(a)
    return (c.byteswap() if c.dtype.byteorder == '>' else c).tobytes()


def expect(out, name, field, a, mode='first', option=None):
    option = option or mode
    n = 1 if mode == 'file' else a.shape[0]
    shape = a.shape if mode == 'file' else a.shape[1:]
    raw = '%s.%s.%s.raw' % (name, option, field.replace('/', '_'))
    with open(os.path.join(out, raw), 'wb') as f:
        f.write(plain_bytes(a))
    dtype = {'longdouble': 'float128', 'clongdouble': 'complex256'}.get(
        a.dtype.name, a.dtype.name)
    lines.append(' '.join(map(str, [name, option, 1, n, field, dtype, raw,
                                    len(shape), *shape])))


class File:
    """A file whose data sets become lines of the manifest when it closes."""

    def __init__(self, out, name, libver='latest', modes=('first',), **kw):
        self.out, self.name, self.modes = out, name, modes
        self.h = h5py.File(os.path.join(out, name), 'w',
                           libver=(libver, libver) if libver != 'earliest'
                           else ('earliest', 'latest'), **kw)
        self.fields = []

    def __enter__(self):
        return self

    def add(self, field, data, **kw):
        self.h.create_dataset(field, data=data, **kw)
        self.fields.append(field)

    def __exit__(self, *_):
        self.h.close()
        with h5py.File(os.path.join(self.out, self.name), 'r') as h:
            for field in self.fields:
                for mode in self.modes:
                    expect(self.out, self.name, field, h[field][()], mode)


BOTH = ('first', 'file')


def layouts(out, libver):
    """Every layout and chunk index that the library version can write."""
    a = array('int32', (13, 6, 5), True)
    kinds = {
        'contiguous': {},
        'single': dict(chunks=(13, 6, 5)),
        'single-big': dict(chunks=(16, 6, 5), maxshape=(16, 6, 5)),
        'grid': dict(chunks=(4, 4, 2)),
        'rows': dict(chunks=(4, 6, 5)),
        'row': dict(chunks=(1, 6, 5)),
        'grow0': dict(chunks=(2, 4, 3), maxshape=(None, 6, 5)),
        'grow1': dict(chunks=(2, 4, 3), maxshape=(13, None, 5)),
        'grow2': dict(chunks=(2, 4, 3), maxshape=(20, 9, None)),
        'grow01': dict(chunks=(2, 4, 3), maxshape=(None, None, 5)),
        'grow012': dict(chunks=(2, 4, 3), maxshape=(None, None, None)),
        'larger': dict(chunks=(2, 4, 3), maxshape=(31, 17, 9)),
    }
    filters = {
        'none': {}, 'gzip': dict(compression='gzip'),
        'lzf': dict(compression='lzf'), 'shuffle': dict(shuffle=True),
        'sum': dict(fletcher32=True),
        'all': dict(compression='gzip', shuffle=True, fletcher32=True),
        'lzfs': dict(compression='lzf', shuffle=True),
    }
    for kind, kw in kinds.items():
        for how, more in filters.items():
            if kind == 'contiguous' and how != 'none':
                continue
            if how in ('shuffle', 'sum', 'lzfs') and kind not in (
                    'grid', 'row', 'grow0'):
                continue
            with File(out, 'l-%s-%s-%s.h5' % (libver, kind, how), libver,
                      BOTH) as f:
                f.add('x', a, **kw, **more)


def early(out, libver):
    """Implicit index: allocated early, no filters, cannot grow."""
    name = 'early-%s.h5' % libver
    a = array('int16', (9, 7))
    with File(out, name, libver, BOTH) as f:
        for field, big in [('x', (9, 7)), ('y', (12, 15))]:
            p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            p.set_chunk((2, 3))
            p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            d = h5py.h5d.create(f.h.id, field.encode(), h5py.h5t.STD_I16LE,
                                h5py.h5s.create_simple((9, 7), big), p)
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, a)
            f.fields.append(field)


def compact(out, libver):
    a = array('float32', (5, 3))
    with File(out, 'compact-%s.h5' % libver, libver, BOTH) as f:
        p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        p.set_layout(h5py.h5d.COMPACT)
        d = h5py.h5d.create(f.h.id, b'x', h5py.h5t.IEEE_F32LE,
                            h5py.h5s.create_simple((5, 3)), p)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, a)
        f.fields.append('x')


def many_chunks(out, libver):
    """Indexes with several levels, pages and super blocks."""
    n = 20000
    a = array('uint8', (n, 2), True)
    with File(out, 'many-%s.h5' % libver, libver) as f:
        f.add('fixed', a, chunks=(1, 2))
        f.add('grow', a, chunks=(1, 2), maxshape=(None, 2))
        f.add('tree', a, chunks=(1, 2), maxshape=(None, None))
        f.add('packed', a, chunks=(1, 2), compression='gzip')
        f.add('packed-grow', a, chunks=(1, 2), maxshape=(None, 2),
              compression='gzip')
        f.add('packed-tree', a, chunks=(1, 2), maxshape=(None, None),
              compression='gzip')


def holes(out, libver):
    """Chunks that were never written, and fill values."""
    with File(out, 'holes-%s.h5' % libver, libver, BOTH) as f:
        for field, kw in [
                ('a', dict(chunks=(2, 4), fillvalue=7)),
                ('b', dict(chunks=(2, 4), fillvalue=-1, compression='gzip')),
                ('c', dict(chunks=(3, 9), maxshape=(None, 9), fillvalue=3)),
                ('d', dict(chunks=(1, 3), maxshape=(None, None))),
                ('e', dict(fillvalue=9)), ('f', dict(chunks=(2, 3)))]:
            d = f.h.create_dataset(field, (10, 9), '>i4' if field == 'd'
                                   else 'i4', **kw)
            if field in 'abcd':
                d[3:5, 2:6] = np.arange(8).reshape(2, 4)
                d[8, 8] = 5
            f.fields.append(field)
    with File(out, 'sparse-pages-%s.h5' % libver, libver) as f:
        for field, most in [('fixed', (9000, 1)), ('grow', (None, 1))]:
            d = f.h.create_dataset(field, (9000, 1), 'u1', chunks=(1, 1),
                                   maxshape=most, fillvalue=2)
            for i in (0, 1, 1500, 2100, 5000, 8999):
                d[i] = i % 251
            f.fields.append(field)
    with File(out, 'shrunk-%s.h5' % libver, libver, BOTH) as f:
        d = f.h.create_dataset('x', data=array('i2', (20, 10)), chunks=(3, 4),
                               maxshape=(None, None))
        d.resize((8, 5))
        d = f.h.create_dataset('y', data=array('i2', (20, 10)), chunks=(3, 4),
                               maxshape=(None, 30))
        d.resize((8, 17))
        f.fields += ['x', 'y']


def types(out, libver):
    with File(out, 'types-%s.h5' % libver, libver, BOTH) as f:
        for t in ['bool', 'i1', 'u1', 'i2', 'u2', 'i4', 'u4', 'i8', 'u8',
                  'f2', 'f4', 'f8', 'longdouble', 'c8', 'c16']:
            f.add('le-' + t, array(t, (4, 3)))
            f.add('packed-' + t, array(t, (4, 3)), chunks=(2, 2),
                  compression='gzip', shuffle=True)
        for t in ['i2', 'u4', 'i8', 'f2', 'f4', 'f8', 'c8', 'c16']:
            a = array(t, (4, 3)).astype('>' + t)
            f.add('be-' + t, a)
            f.add('be-packed-' + t, a, chunks=(2, 2), compression='gzip')
            f.add('be-row-' + t, a, chunks=(1, 3), compression='gzip')
            f.add('be-chunk-' + t, a, chunks=(3, 2))
        e = h5py.enum_dtype({'RED': 0, 'GREEN': 1, 'BLUE': 42}, basetype='i2')
        f.h.create_dataset('enum', data=np.array([0, 1, 42, 1], 'i2'), dtype=e)
        f.fields.append('enum')


def shapes(out):
    # the advice of the message about unequal arrays
    with File(out, 'many-lengths.h5', modes=BOTH) as f:
        f.add('g/long', array('i8', (9,)))
        f.add('g/short', array('i8', (4,)))
    # a single number among arrays of equal length is accepted
    with File(out, 'numbers.h5') as f:
        f.add('x', array('i8', (9,)))
        f.h['one'] = [5]
    with File(out, 'scalar.h5', modes=('file',)) as f:
        f.add('x', array('f4', ()))
        f.add('y', array('i8', (3, 0)))
        f.add('z', array('i8', (2, 2)))
    with File(out, 'nothing.h5') as f:
        f.add('x', array('f4', (0, 4)))
        f.add('y', array('f4', (0, 4)), chunks=(3, 3), maxshape=(None, 4))
    with File(out, 'axes.h5', modes=BOTH) as f:
        f.add('x', array('i2', (3, 2, 3, 2, 3, 2)), chunks=(2, 1, 2, 2, 2, 1))
        f.add('y', array('u1', (3, 1, 1, 7)), chunks=(1, 1, 1, 4),
              compression='gzip')
    with File(out, 'dlio.h5') as f:
        f.h.create_dataset('other', data=array('i8', (50, 50)))
        for i in (10, 0, 2):
            f.add('records_%d' % i, array('u1', (4, 3, 5)))
        f.add('labels', np.zeros(4, 'i8'))


def trees(out, libver):
    """Groups, links and attributes: few, many, large."""
    with File(out, 'tree-%s.h5' % libver, libver) as f:
        h = f.h
        f.add('a/b/c/x', array('i4', (6, 2)))
        f.add('y', array('i4', (6,)))
        h.create_dataset('short', data=array('i4', (3,)))
        h.create_dataset('names', data=np.array([b'ab', b'c'] * 3))
        h.create_dataset('record', data=np.zeros(6, 'i4,f8'))
        h['a/soft'] = h5py.SoftLink('/a/b/c/x')
        h['a/near'] = h5py.SoftLink('b/c')
        h['a/dangling'] = h5py.SoftLink('/nowhere')
        h['a/far'] = h5py.ExternalLink('other.h5', '/x')
        h['loop'] = h5py.SoftLink('/loop')
        h['a/b/up'] = h['/']
        h['committed'] = np.dtype('f4')
        h.create_dataset('of-committed', data=array('f4', (6, 3)),
                         dtype=h['committed'])
        f.fields.append('of-committed')
        many = h.create_group('many')
        for i in range(300):
            many.create_group('a-rather-long-name-number-%d' % i)
        for i in range(60):
            h.attrs['attribute-%d' % i] = 'value %d' % i
        a = h['y'].attrs
        a['int'] = 5
        a['vector'] = np.arange(3.0)
        a['fixed'] = np.bytes_(b'fixed')
        a['utf8'] = 'h\u00e9llo'
        a['list'] = ['x', 'yy', '']
        a['empty'] = h5py.Empty('f4')
        a['ref'] = h['a'].ref
        if libver != 'earliest':
            h['a'].attrs['huge'] = np.arange(20000)
    note_tree(out, 'tree-%s.h5' % libver)


def note_tree(out, name):
    with open(os.path.join(out, 'tree'), 'a') as t:
        with h5py.File(os.path.join(out, name), 'r') as h:
            seen = [0, 0, 0, 0]

            def visit(_, o):
                seen[0] += 1
                seen[1] += isinstance(o, h5py.Dataset)
                seen[2] += len(o.attrs)
                seen[3] += sum(bool(h5py.check_string_dtype(
                    o.attrs.get_id(a).dtype)) for a in o.attrs)
            h.visititems(visit)
            visit('/', h)
        t.write('%s %d %d %d %d\n' % (name, *seen))


def cells(out, archive):
    """Files in the layout of anndata, of this version and others."""
    warnings.simplefilter('ignore')
    a = anndata.AnnData(scipy.sparse.random(20, 30, 0.2, 'csr', 'f4'))
    a.obs['type'] = ['T', 'B'] * 10
    a.obs['type'] = a.obs['type'].astype('category')
    a.obsm['pca'] = array('f4', (20, 4))
    a.write_h5ad(os.path.join(out, 'cells.h5ad'))
    for path in glob.glob(os.path.join(archive, '*.h5ad')):
        shutil.copy(path, out)
    for path in sorted(glob.glob(os.path.join(out, '*.h5ad'))):
        note_tree(out, os.path.basename(path))


def sums_beneath(out):
    """A checksum that a later filter compresses, as in netCDF-4."""
    a = array('i4', (9, 8), True)
    orders = ['sum-gzip', 'shuffle-sum-gzip', 'sum-shuffle-gzip',
              'sum-shuffle', 'sum-gzip-sum', 'shuffle-gzip-sum']
    for libver in ('earliest', 'latest'):
        for chunk in [(4, 3), (1, 8), (9, 8), (4, 8)]:
            name = 'sums-%s-%dx%d.h5' % (libver, *chunk)
            with File(out, name, libver, BOTH) as f:
                for order in orders:
                    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                    p.set_chunk(chunk)
                    for step in order.split('-'):
                        {'sum': p.set_fletcher32, 'shuffle': p.set_shuffle,
                         'gzip': p.set_deflate}[step]()
                    d = h5py.h5d.create(f.h.id, order.encode(),
                                        h5py.h5t.STD_I32LE,
                                        h5py.h5s.create_simple((9, 8)), p)
                    d.write(h5py.h5s.ALL, h5py.h5s.ALL, a)
                    if order.startswith('shuffle-sum'):  # one not shuffled
                        raw = a[:chunk[0], :chunk[1]].tobytes()
                        raw += fletcher32(raw)
                        d.write_direct_chunk((0, 0), zlib.compress(raw), 1)
                    f.fields.append(order)


def fletcher32(data):
    """HDF5's fletcher32: big-endian words, sums modulo 65535, never 0."""
    a = b = 0
    for i in range(0, len(data), 2):
        a = (a + (data[i] << 8 | data[i + 1])) % 65535
        b = (b + a) % 65535
    return struct.pack('<I', (b or 65535) << 16 | (a or 65535))


def library():
    """The libhdf5 of h5py, for functions that h5py does not offer."""
    with open('/proc/self/maps') as f:
        names = {line.split()[-1] for line in f if 'libhdf5' in line}
    return ctypes.CDLL([n for n in names if '_hl' not in n][0])


class ImageConfig(ctypes.Structure):
    _fields_ = [('version', ctypes.c_int), ('generate', ctypes.c_bool),
                ('resize', ctypes.c_bool), ('ageout', ctypes.c_int)]


def open_extended(path, tables, image, block=0):
    """A new file, with tables of shared messages and a cache image."""
    lib = library()
    fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    fcpl.set_userblock(block)
    if tables:
        assert lib.H5Pset_shared_mesg_nindexes(ctypes.c_int64(fcpl.id),
                                               len(tables)) >= 0
    for i, kinds in enumerate(tables):
        assert lib.H5Pset_shared_mesg_index(ctypes.c_int64(fcpl.id), i, kinds,
                                            1) >= 0
    if image:
        assert lib.H5Pset_mdc_image_config(
            ctypes.c_int64(fapl.id),
            ctypes.byref(ImageConfig(1, True, False, -1))) >= 0
    fid = h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, fcpl, fapl)
    return h5py.File(fid)


def fill_extended(f):
    h, a = f.h, array('i4', (7, 5), True)
    for i in range(3):
        f.add('x%d' % i, a + i)
        f.add('g%d' % i, a + i, chunks=(2, 5), compression='gzip',
              shuffle=True)
        d = h.create_dataset('h%d' % i, (7, 5), 'i4', chunks=(2, 5),
                             fillvalue=77)
        d[2:4] = i
        d.attrs['vector'] = np.arange(3.0)
        for k in range(25):  # more than a header keeps
            d.attrs['name-%d' % k] = 'value %d' % k
        p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        p.set_layout(h5py.h5d.COMPACT)
        c = h5py.h5d.create(h.id, b'c%d' % i, h5py.h5t.STD_I32LE,
                            h5py.h5s.create_simple((7, 5)), p)
        c.write(h5py.h5s.ALL, h5py.h5s.ALL, a - i)
        f.fields += ['h%d' % i, 'c%d' % i]
    h['group/text'] = np.array(['a', 'b'], 'S1')


def extended(out):
    """Contents of the superblock extension."""
    for kind, tables, image, block in [
            ('table', [0x182a], False, 0),
            ('tables', [0x2, 0x8, 0x20, 0x800, 0x1000], False, 0),
            ('shapes', [0x2], False, 512),
            ('image', [], True, 0),
            ('both', [0x182a], True, 0),
            ('both-user', [0x2, 0x1828], True, 1024)]:
        name = 'extended-%s.h5' % kind
        path = os.path.join(out, name)
        f = File(out, name, modes=BOTH)
        f.h.close()
        f.h = open_extended(path, tables, image, block)
        with f:
            fill_extended(f)
        note_tree(out, name)


def user_blocks(out):
    for size in (512, 1024, 4096):
        for libver in ('earliest', 'latest'):
            with File(out, 'user-%d-%s.h5' % (size, libver), libver, BOTH,
                      userblock_size=size) as f:
                f.add('x', array('i4', (5, 2)))
                f.add('y', array('i4', (5, 2)), chunks=(2, 2),
                      compression='gzip')


def lz4_literals(data, block):
    """HDF5's lz4 framing, with blocks of literals only."""
    out = struct.pack('>QI', len(data), block)
    for i in range(0, len(data), block):
        part = data[i:i + block]
        n = len(part) - 15
        if n < 0:
            packed = bytes([len(part) << 4]) + part
        else:
            packed = b'\xf0' + b'\xff' * (n // 255) + bytes([n % 255]) + part
        out += struct.pack('>I', len(packed)) + packed
    return out


def blosc_stored(data, item):
    """A Blosc 1 buffer that is marked as a plain copy."""
    return struct.pack('<BBBBIII', 2, 1, 2, item, len(data), len(data),
                       len(data) + 16) + data


def zstd_raw(data):
    """A Zstandard frame of one raw block."""
    return (b'\x28\xb5\x2f\xfd' + b'\xa0' + struct.pack('<I', len(data)) +
            (len(data) << 3 | 1).to_bytes(3, 'little') + data)


def plugins(out):
    """Filters that h5py lacks: chunks are compressed here."""
    packers = {32015: zstd_raw, 32004: lambda d: lz4_literals(d, 64),
               32001: lambda d: blosc_stored(d, 4)}
    a = array('i4', (6, 8))
    for number, pack in packers.items():
        for libver in ('earliest', 'latest'):
            name = 'filter-%d-%s.h5' % (number, libver)
            with h5py.File(os.path.join(out, name), 'w', libver=libver) as h:
                p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                p.set_chunk((2, 8))
                p.set_filter(number, h5py.h5z.FLAG_OPTIONAL, (1, 2, 3))
                d = h5py.h5d.create(h.id, b'x', h5py.h5t.STD_I32LE,
                                    h5py.h5s.create_simple((6, 8)), p)
                for i in range(0, 6, 2):
                    d.write_direct_chunk((i, 0), pack(a[i:i + 2].tobytes()))
            expect(out, name, 'x', a)
    masked(out)


def masked(out):
    """One chunk of three without the first filter, one without both."""
    a = array('i4', (6, 8), True)
    with h5py.File(os.path.join(out, 'masked.h5'), 'w') as h:
        d = h.create_dataset('x', (6, 8), 'i4', chunks=(2, 8), shuffle=True,
                             compression='gzip')
        d.id.write_direct_chunk((0, 0), zlib.compress(a[:2].tobytes()), 1)
        d.id.write_direct_chunk((2, 0), a[2:4].tobytes(), 3)
        d[4:] = a[4:]
    expect(out, 'masked.h5', 'x', a)
    expect(out, 'masked.h5', 'x', a, 'file')


def scaled(h):
    h.create_dataset('x', data=np.arange(64, dtype='i4'), chunks=(8,),
                     scaleoffset=0)


def bitshuffled(h):
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    p.set_chunk((8,))
    p.set_filter(32008, h5py.h5z.FLAG_OPTIONAL, (0,))
    h5py.h5d.create(h.id, b'x', h5py.h5t.STD_I32LE,
                    h5py.h5s.create_simple((64,)), p)


def strings(h):
    h['x'] = np.array([b'a', b'b'])


def no_data(h):
    h.create_group('only')


def sparse(g):
    """Three cells of four genes, by column like Cell Ranger."""
    g['data'] = np.array([1, 2, 3, 4, 5], 'i4')
    g['indices'] = np.array([0, 3, 1, 0, 2], 'i8')
    g['indptr'] = np.array([0, 2, 3, 5], 'i8')
    return g


def ranger2(h):
    g = sparse(h.create_group('GRCh38'))
    g['shape'] = np.array([4, 3], 'i4')
    g['barcodes'] = np.array([b'AAAC-1', b'AAAG-1', b'AAAT-1'])
    g['genes'] = g['gene_names'] = np.array([b'a', b'b', b'c', b'd'])


def ranger3(h):
    g = sparse(h.create_group('matrix'))
    g['shape'] = np.array([4, 3], 'i4')
    g['barcodes'] = np.array([b'AAAC-1', b'AAAG-1', b'AAAT-1'])
    f = g.create_group('features')
    for name in ['id', 'name', 'feature_type', 'genome']:
        f[name] = np.array([b'a', b'b', b'c', b'd'])
    f['target_sets/' + 'a name longer than a field may have ' * 2] = \
        np.arange(2)


def sparse_only(h):
    sparse(h.create_group('some/where'))


def as_anndata(h):
    sparse(h.create_group('X'))
    h['obs/_index'] = h['var/_index'] = np.arange(4)


def unequal(h):
    h['g/long'], h['g/short'], h['one'] = np.arange(9), np.arange(4), [5]


def make_refused(out):
    for name in ('ranger2', 'ranger3'):
        refused.append('%s.h5 h5ad 10x Genomics Cell Ranger' % name)
    for make, text in [(scaled, 'scaleoffset'), (bitshuffled, 'bitshuffle'),
                       (strings, 'no numeric data set'),
                       (no_data, 'no numeric data set'),
                       (ranger2, '10x Genomics Cell Ranger (group \'GRCh38\')'),
                       (ranger3, '10x Genomics Cell Ranger (group \'matrix\')'),
                       (sparse_only, "group 'some/where' is a sparse matrix"),
                       (as_anndata, 'the file is AnnData; set format=h5ad'),
                       (unequal, "'g/long' (9), but 'g/short' has 4; "
                                 'set fields=g/long')]:
        name = make.__name__ + '.h5'
        with h5py.File(os.path.join(out, name), 'w', libver='latest') as h:
            make(h)
        refused.append('%s hdf5 %s' % (name, text))
    for name, content in [('text.h5', b'not HDF5 at all' * 100),
                          ('empty.h5', b'')]:
        with open(os.path.join(out, name), 'wb') as f:
            f.write(content)
        refused.append("%s hdf5 not an HDF5 file: it starts with '%s'" % (
            name, content[:8].decode()))


def small_files(out):
    """Small enough to be damaged byte by byte."""
    for libver in ('earliest', 'latest'):
        a = array('i2', (5, 4), True)
        for kind, kw in {
                'flat': {}, 'grid': dict(chunks=(2, 3)),
                'gzip': dict(chunks=(2, 4), compression='gzip', shuffle=True),
                'grow': dict(chunks=(2, 4), maxshape=(None, 4),
                             compression='lzf', fletcher32=True),
                'tree': dict(chunks=(2, 3), maxshape=(None, None),
                             compression='gzip'),
                'row': dict(chunks=(1, 4), compression='gzip')}.items():
            with File(out, 'small-%s-%s.h5' % (kind, libver), libver) as f:
                f.add('x', a, **kw)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for libver in LIBVERS:
        layouts(out, libver)
        early(out, libver)
        compact(out, libver)
        holes(out, libver)
        types(out, libver)
        trees(out, libver)
    for libver in ('earliest', 'latest'):
        many_chunks(out, libver)
    shapes(out)
    user_blocks(out)
    plugins(out)
    sums_beneath(out)
    extended(out)
    make_refused(out)
    small_files(out)
    cells(out, sys.argv[2] if len(sys.argv) > 2 else '')
    for name, content in [('manifest', lines), ('refused', refused)]:
        with open(os.path.join(out, name), 'w') as f:
            f.write('\n'.join(content) + '\n')


if __name__ == '__main__':
    main()
