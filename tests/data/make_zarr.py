#!/usr/bin/python3
"""AnnData in zarr for the tests, and what is in it.

    make_zarr.py DIRECTORY [ARCHIVE]

Version 2 is written by anndata and by zarr in every variant they have. Version
3 is written here, by hand from its specification, with numpy and numcodecs,
because the zarr of today's systems does not write it. ARCHIVE: a directory
with stores and files of other versions of anndata. The lists are those of
make_formats.py. tiny-*.zip are small, to be damaged in every place.
"""
import itertools
import json
import os
import shutil
import struct
import sys
import warnings
import zipfile

import anndata
import numcodecs
import numpy as np
import pandas as pd
import scipy.sparse as sp
import zarr

import make_formats as mf
from make_h5ad import (N, G, case, coded, counts, lists, make_obs, path,
                       refuse, rng, rows, text_codes)

warnings.simplefilter('ignore')


# ---- stores from anndata ----

def zipped(name, folder, prefix='', how=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path(name), 'w', how) as z:
        for d, _, files in sorted(os.walk(path(folder))):
            for f in sorted(files):
                p = os.path.join(d, f)
                z.write(p, prefix + os.path.relpath(p, path(folder)))


def make_anndata():
    m, raw, obs = counts(), counts(N, G + 4), make_obs(N)
    obs['maybe'] = pd.array([1, 2, None, 4] * 9 + [5], 'Int64')
    obs['perhaps'] = pd.array([True, None, False] * 12 + [True], 'boolean')
    var = pd.DataFrame({'highly_variable': rng.random(G) < 0.4},
                       index=['gene%d' % i for i in range(G)])
    hv = var.highly_variable.values
    a = anndata.AnnData(sp.csr_matrix(m), obs, var, dtype=np.float32)
    a.raw = anndata.AnnData(sp.csr_matrix(raw), obs[[]], dtype=np.float32)
    a.layers['dense'] = m * 2
    a.layers['f8'] = (m * 0.5).astype('f8')
    a.layers['csc'] = sp.csc_matrix(m)
    a.obsm['X_pca'] = rng.random((N, 5))
    a.copy().write_zarr(path('ad.zarr'))
    a.copy().write_zarr(path('chunks.zarr'), chunks=(10, 7))
    a.copy().write_zarr(zarr.NestedDirectoryStore(path('nested.zarr')),
                        chunks=(10, 7))
    with zarr.ZipStore(path('ad.zarr.zip'), mode='w') as z:
        a.copy().write_zarr(z)
    zipped('deflated.zarr.zip', 'chunks.zarr', how=zipfile.ZIP_DEFLATED)
    zipped('folder.zarr.zip', 'ad.zarr', 'some/folder/')
    shutil.copytree(path('ad.zarr'), path('unnamed'))
    shutil.copy(path('ad.zarr.zip'), path('unnamed.zip'))
    cols = {'tissue': coded(obs.tissue), 'gap': coded(obs.gap),
            'plate': coded(obs.plate), 'i8': obs.i8.values,
            'u16': obs.u16.values, 'i64': obs.i64.values,
            'f32': obs.f32.values, 'f64': obs.f64.values,
            'flag': obs.flag.values, 'text': text_codes(obs.text),
            'maybe': obs.maybe.astype('f8').values,
            'perhaps': np.array([-1 if pd.isna(x) else int(x)
                                 for x in obs.perhaps], 'i1')}
    ask = 'obs=' + ','.join(cols)
    mf.put('genes.txt', b'gene11\ngene2\ngene20\n')
    for f in ('ad.zarr', 'chunks.zarr', 'nested.zarr', 'ad.zarr.zip',
              'deflated.zarr.zip', 'folder.zarr.zip', 'unnamed',
              'unnamed.zip format=zarr'):
        n = f.split()[0]
        case(n, f, rows(m))
        case(n + '-csr', f, lists(m), 'output=csr')
        case(n + '-raw', f, rows(raw), 'matrix=raw')
        case(n + '-dense', f, rows(m * 2), 'matrix=layers/dense')
        case(n + '-f8', f, rows(m * .5, 'f8'), 'matrix=layers/f8',
             'dtype=float64')
        case(n + '-obs', f, rows(m, **cols), ask)
        case(n + '-obs-csr', f, lists(m, **cols), ask, 'output=csr')
        case(n + '-hv', f, rows(m[:, hv] * 2), 'genes=var:highly_variable',
             'matrix=layers/dense')
        case(n + '-list', f, rows(m[:, [11, 2, 20]]),
             'genes=@' + path('genes.txt'))
        case(n + '-pca', f, rows(m, X_pca=a.obsm['X_pca']),
             'matrix=X,obsm/X_pca')
        keep = (obs.tissue == 'lung').values
        case(n + '-filter', f, rows(m[keep], i8=obs.i8.values[keep]),
             'filter=tissue:lung', 'obs=i8')
    # the same cells as h5ad, zarr and an archive of it, together
    os.makedirs(path('together'))
    a.copy().write_h5ad(path('together/b.h5ad'), compression='gzip')
    shutil.copytree(path('chunks.zarr'), path('together/a.zarr'))
    shutil.copy(path('ad.zarr.zip'), path('together/c.zarr.zip'))
    three = np.concatenate([m] * 3)
    codes = np.concatenate([coded(obs.tissue)] * 3)
    case('together', 'together', rows(three, tissue=codes), 'obs=tissue')
    case('together-csr', 'together', lists(three), 'output=csr')
    case('together-source', 'together', rows(
        three, source=np.repeat(np.arange(3, dtype='i4'), N)), 'source=true')
    f = 'ad.zarr'
    refuse(f, "a.layers['csc'].tocsr()", 'matrix=layers/csc')
    refuse(f, 'contains X, layers/dense, layers/f8, obsm/X_pca, raw: choose',
           'matrix=layers/none')
    refuse('ad.zarr.zip', 'contains X, layers/dense, layers/f8, obsm/X_pca, '
           'raw: choose', 'matrix=layers/none')
    refuse(f, "no column 'none'", 'obs=none')
    refuse(f, "no column 'tissu'; did you mean 'tissue'?", 'obs=tissu')
    refuse('ad.zarr.zip', "did you mean 'tissue'?", 'obs=tissu')
    refuse(f, 'not a matrix', 'matrix=obs')
    case('part', f + '/X/data', samples(
        x=zarr.open_array(path(f + '/X/data'), 'r')[...]))


# ---- version 2 by hand ----

def put_frame(g, name, length, **columns):
    f = g.create_group(name)
    f.attrs.update({'_index': '_index', 'column-order': list(columns),
                    'encoding-type': 'dataframe', 'encoding-version': '0.2.0'})
    f.array('_index', np.array(['%s%d' % (name[0], i) for i in range(length)],
                               object), object_codec=numcodecs.VLenUTF8())
    for k, v in columns.items():
        f.array(k, v)
    return f


def put_sparse(g, name, m, chunks=None, index='i4', indptr='i4', data=None,
               **kw):
    x = g.create_group(name)
    x.attrs.update({'encoding-type': 'csr_matrix', 'encoding-version': '0.1.0',
                    'shape': list(m.shape)})
    x.array('data', m.data.astype(data or m.dtype), chunks=chunks, **kw)
    x.array('indices', m.indices.astype(index), chunks=chunks, **kw)
    x.array('indptr', m.indptr.astype(indptr), chunks=chunks, **kw)
    return x


def by_hand(name, m, **kw):
    store = zarr.DirectoryStore(path(name))
    g = zarr.group(store)
    put_sparse(g, 'X', sp.csr_matrix(m), **kw)
    put_frame(g, 'obs', m.shape[0])
    put_frame(g, 'var', m.shape[1])
    return g


COMPRESSORS = {
    'none': None, 'zstd': numcodecs.Zstd(3), 'gzip': numcodecs.GZip(5),
    'zlib': numcodecs.Zlib(5), 'lz4': numcodecs.LZ4(),
    'blosc-lz4': numcodecs.Blosc('lz4', 5, numcodecs.Blosc.SHUFFLE),
    'blosc-bits': numcodecs.Blosc('lz4', 5, numcodecs.Blosc.BITSHUFFLE),
    'blosc-zstd': numcodecs.Blosc('zstd', 3, numcodecs.Blosc.NOSHUFFLE),
    'blosc-zlib': numcodecs.Blosc('zlib', 3),
    'blosc-blosclz': numcodecs.Blosc('blosclz', 9),
}


def make_compressors():
    m = counts()
    for name, c in COMPRESSORS.items():
        for chunk, shuffle in ((7, False), (64, True), (100000, False)):
            f = 'c-%s-%d.zarr' % (name, chunk)
            filters = [numcodecs.Shuffle(4)] if shuffle else None
            g = by_hand(f, m, chunks=chunk, compressor=c, filters=filters)
            g.array('layers/d', m, chunks=(5, 6), compressor=c,
                    filters=filters)
            case(f, f, rows(m))
            case(f + '-csr', f, lists(m), 'output=csr')
            case(f + '-d', f, rows(m), 'matrix=layers/d')
            zipped(f + '.zip', f)
            case(f + '.zip', f + '.zip', rows(m))
    zipped('deflated-none.zarr.zip', 'c-none-7.zarr',
           how=zipfile.ZIP_DEFLATED)
    case('deflated-none', 'deflated-none.zarr.zip', rows(m))


def make_blocks():
    """Several blocks of Blosc in a chunk, the last one shorter."""
    types = itertools.cycle(('<u1', '<f4', '>i2', '<f8', '<i4'))
    names = numcodecs.blosc.list_compressors()
    m = sp.random(500, 400, 0.9, 'csr', 'f4', 5)
    m.data = np.ceil(m.data * 99)
    m.data[80000:160000] = 7
    for name, how in itertools.product(names, range(3)):
        c = numcodecs.Blosc(name, 5, how, blocksize=16384)
        f = 'blocks-%s-%d.zarr' % (name, how)
        by_hand(f, m, chunks=80000, data=next(types), compressor=c)
        assert blosc_head(f + '/X/indices/0')[1:3] in (
            (320000, 65536), (320000, 16384))
        case(f, f, rows(m)) if how else \
            case(f + '-csr', f, lists(m), 'output=csr')
    zipped('blocks.zarr.zip', f)
    case('blocks-zip', 'blocks.zarr.zip', rows(m))
    zipped('blocks-deflated.zarr.zip', f, how=zipfile.ZIP_DEFLATED)
    case('blocks-deflated', 'blocks-deflated.zarr.zip', rows(m))
    c = numcodecs.Blosc('lz4', 5, blocksize=16384)
    # no shorter block, chunks of one block, and rows longer than a chunk
    for chunk in 32768, 20000, 4096:
        f = 'blocks-%d.zarr' % chunk
        by_hand(f, m, chunks=chunk, compressor=c)
        case(f, f, rows(m))
    w = sp.random(3, 90000, 0.7, 'csr', 'f4', 6)
    by_hand('blocks-wide.zarr', w, chunks=20000, compressor=c)
    case('blocks-wide', 'blocks-wide.zarr', rows(w))
    case('blocks-wide-csr', 'blocks-wide.zarr', lists(w), 'output=csr')
    # uncompressed chunks: the first, another one, all
    for which in slice(0, 80000), slice(80000, 160000), slice(None):
        r = m.astype('f8')
        r.data[which] = rng.random(len(r.data[which]))
        f = 'blocks-random-%s-%s.zarr' % (which.start, which.stop)
        by_hand(f, r, chunks=80000, compressor=numcodecs.Blosc(
            'lz4', 5, numcodecs.Blosc.NOSHUFFLE, blocksize=16384))
        k = (which.start or 0) // 80000
        assert blosc_head(f + '/X/data/%d' % k)[0] & 2
        case(f, f, rows(r, 'f8'), 'dtype=float64')
    # missing chunks
    z = m.copy()
    z.data[80000:160000] = 0
    by_hand('blocks-gap.zarr', z, chunks=80000, compressor=c,
            write_empty_chunks=False)
    assert not os.path.exists(path('blocks-gap.zarr/X/data/1'))
    case('blocks-gap', 'blocks-gap.zarr', rows(z))
    # chunks that differ are not divided
    by_hand('blocks-mixed.zarr', m, chunks=80000, compressor=c)
    by_hand('blocks-other.zarr', m, chunks=80000, compressor=numcodecs.Blosc(
        'zstd', 1, blocksize=32768))
    shutil.copy(path('blocks-other.zarr/X/data/1'),
                path('blocks-mixed.zarr/X/data/1'))
    case('blocks-mixed', 'blocks-mixed.zarr', rows(m))
    for shard in None, (160000,):
        f = 'blocks-v3%s.zarr' % ('-shard' if shard else '')
        v3_store(f, m, {'n': np.arange(500)}, chunk=(80000,), shard=shard,
                 codecs=CODECS['blosc-blocks'])
        case(f, f, rows(m))
        case(f + '-csr', f, lists(m), 'output=csr')


def blosc_head(name):
    """Flags, sizes of all, of a block and as stored."""
    with open(path(name), 'rb') as f:
        return struct.unpack('<xxBxIII', f.read(16))


def make_types():
    for t in ('i1', 'u1', '<i2', '<u2', '<i4', '<u4', '<i8', '<u8', '<f2',
              '<f4', '<f8', '>i2', '>u4', '>i8', '>f4', '>f8', 'b1'):
        m = counts()
        if t == 'b1':
            m = (m > 0).astype('f4')
        f = 't-%s.zarr' % t.strip('<>') + ('-big' if t[0] == '>' else '')
        f = f.replace('.zarr-big', '-big.zarr')
        g = by_hand(f, m, chunks=50, data=t)
        g.array('layers/d', m.astype(t), chunks=(8, 23))
        g.array('layers/plain', m.astype(t), chunks=(8, 10), compressor=None)
        case(f, f, rows(m))
        case(f + '-csr', f, lists(m, 'f8'), 'output=csr', 'dtype=float64')
        case(f + '-d', f, rows(m), 'matrix=layers/d')
        case(f + '-plain', f, rows(m), 'matrix=layers/plain')
    for index in 'u1', '<u2', '<i8', '>u2', '>i4':
        m = counts()
        f = 'i-%s.zarr' % index.replace('>', 'b').strip('<')
        by_hand(f, m, chunks=33, index=index, indptr='>i8')
        case(f, f, rows(m))
        case(f + '-csr', f, lists(m), 'output=csr')
    m = counts()
    g = by_hand('order.zarr', m)
    g.array('layers/f1', np.asfortranarray(m), chunks=(1, 8), order='F')
    g.array('layers/f', np.asfortranarray(m), chunks=(5, 8), order='F')
    case('order-1', 'order.zarr', rows(m), 'matrix=layers/f1')
    refuse('order.zarr', 'stores it by row', 'matrix=layers/f')
    for name, how in (('bz2', {'compressor': numcodecs.BZ2()}),
                      ('lzma', {'compressor': numcodecs.LZMA()}),
                      ('delta', {'filters': [numcodecs.Delta('f4')]})):
        g.array('layers/' + name, m, **how)
        refuse('order.zarr', "codec '%s' is not supported" % name,
               'matrix=layers/' + name)
    make_sums(m)


def make_sums(m):
    """Chunks of an archive with wrong checksums."""
    for name, how in (('stored', zipfile.ZIP_STORED),
                      ('deflated', zipfile.ZIP_DEFLATED)):
        g = by_hand('sum-%s.zarr' % name, m)
        g.array('layers/d', m, chunks=(10, G), compressor=numcodecs.GZip(1)
                if name == 'stored' else None)
        f = 'sum-%s.zarr.zip' % name
        zipped(f, 'sum-%s.zarr' % name, how=how)
        case('sum-' + name, f, rows(m), 'matrix=layers/d')
        with open(path(f), 'rb') as file:
            b = bytearray(file.read())
        b[b.rfind(b'PK\x03\x04', 0, b.find(b'layers/d/0.0')) + 14] ^= 1
        b[b.rfind(b'PK\x01\x02', 0, b.rfind(b'layers/d/0.0')) + 16] ^= 1
        mf.put('bad-' + f, bytes(b))
        refuse('bad-' + f, 'checksum in the archive', 'matrix=layers/d')


def make_missing():
    """Missing chunks read as the fill value."""
    m = np.zeros((20, 9), 'f4')
    m[4:7, 2] = 3
    m[19, 8] = 1
    for fill in 0, 2.5:
        f = 'missing-%g.zarr' % fill
        want = m + np.float32(fill)
        g = by_hand(f, m, chunks=2, write_empty_chunks=False)
        d = g.create('layers/d', shape=m.shape, chunks=(3, 4), dtype='f4',
                     fill_value=fill, write_empty_chunks=False)
        d[:] = want
        assert len(os.listdir(path(f + '/layers/d'))) < 10
        case(f, f, rows(m))
        case(f + '-d', f, rows(want), 'matrix=layers/d')
        zipped(f + '.zip', f)
        case(f + '.zip', f + '.zip', rows(want), 'matrix=layers/d')
    # values at gene 0 whose chunk of genes was all fill
    s = sp.csr_matrix((np.ones(12, 'f4'), np.zeros(12, 'i4'),
                       np.arange(13)), (12, 3))
    g = by_hand('zeros.zarr', s.toarray(), chunks=4, write_empty_chunks=False)
    assert os.listdir(path('zeros.zarr/X/indices')) == ['.zarray']
    case('zeros', 'zeros.zarr', rows(s))
    case('zeros-csr', 'zeros.zarr', lists(s), 'output=csr')
    # an array of fill values only, and empty rows
    e = np.zeros((6, 4), 'f4')
    by_hand('empty.zarr', e, chunks=4, write_empty_chunks=False)
    case('empty', 'empty.zarr', rows(e))
    nan = by_hand('nan.zarr', e).create('layers/d', shape=(6, 4), dtype='f8',
                                        chunks=(3, 4), fill_value=np.inf)
    nan[:3] = 1
    case('inf', 'nan.zarr', rows(np.repeat([1, np.inf], 3)[:, None] *
                                 np.ones(4)), 'matrix=layers/d')


def make_obs_kinds():
    m = counts(11, 5)
    g = by_hand('kinds.zarr', m)
    o = g['obs']
    words = ['b', 'a', 'Zo\u00eb', '', 'b'] * 2 + ['\U0001f9ec']
    o.array('words', np.array(words, object), chunks=4,
            object_codec=numcodecs.VLenUTF8())
    o.array('wide', np.array(words), chunks=3)
    o.array('wide_big', np.array(words).astype('>U4'), chunks=3)
    o.array('bytes', np.array([w.encode() for w in words]), chunks=5,
            compressor=numcodecs.GZip())
    c = o.create_group('cats')
    c.attrs['encoding-type'] = 'categorical'
    c.array('codes', np.array([0, 1, 2, -1, 1, 0, 0, 2, 2, 1, 0], 'i1'))
    c.array('categories', np.array([30, 10, 20]))
    # as 0.7 stored them
    o.array('old', np.array([1, 0, -1] * 3 + [1, 1], 'i1'))
    o['old'].attrs['categories'] = '__categories/old'
    o.array('__categories/old', np.array(['x', 'y'], object),
            object_codec=numcodecs.VLenUTF8())
    n = o.create_group('nstr')
    n.attrs['encoding-type'] = 'nullable-string-array'
    n.array('values', np.array(words, object),
            object_codec=numcodecs.VLenUTF8())
    n.array('mask', np.array([False, True] * 5 + [False]))
    masked = text_codes([w for i, w in enumerate(words) if not i % 2])
    nstr = np.full(11, -1, 'i4')
    nstr[::2] = masked
    cols = {'words': text_codes(words), 'wide': text_codes(words),
            'wide_big': text_codes(words), 'bytes': text_codes(words),
            'cats': c['codes'][:].astype('i4'),
            'old': o['old'][:].astype('i4'), 'nstr': nstr}
    o.attrs['column-order'] = list(cols)
    case('kinds', 'kinds.zarr', rows(m, **cols), 'obs=' + ','.join(cols))
    case('kinds-filter', 'kinds.zarr', rows(
        m[[w in ('b', 'Zo\u00eb') for w in words]]),
        'filter=words:b|Zo\u00eb')
    o.array('when', np.arange(11).astype('M8[ns]'))
    refuse('kinds.zarr', '<M8[ns]', 'obs=when')
    o.array('both', np.zeros((11, 2)))
    refuse('kinds.zarr', 'axes', 'obs=both')
    o.array('long', np.zeros(12))
    refuse('kinds.zarr', 'has 12 values', 'obs=long')


def make_alone():
    """A matrix without AnnData around it."""
    m = counts()
    zarr.save_array(path('array.zarr'), m, chunks=(9, 9))
    case('array', 'array.zarr', rows(m), 'matrix=.')
    zarr.save_array(path('plain'), m)
    case('plain', 'plain', rows(m), 'matrix=.')
    case('array-plain', 'array.zarr', samples(x=m))
    refuse('array.zarr', 'applies to single cells', 'obs=kind')
    refuse('array.zarr', 'applies to single cells', 'output=csr')
    refuse('ad.zarr', 'applies to plain arrays', 'samples=file')
    refuse('ad.zarr', "'nowhere' is not a field of this", 'fields=nowhere')
    g = zarr.group(zarr.DirectoryStore(path('around.zarr')))
    put_sparse(g, 'csr', sp.csr_matrix(m))
    shutil.move(path('around.zarr/csr'), path('csr.zarr'))
    case('csr', 'csr.zarr', rows(m), 'matrix=.')
    case('csr-csr', 'csr.zarr', lists(m), 'matrix=.', 'output=csr')


# ---- plain arrays ----

def samples(**fields):
    """Along the first axis; names with a slash are written with __."""
    fields = {k.replace('__', '/'): np.asarray(v) for k, v in fields.items()}
    fields = {k: v.astype(v.dtype.newbyteorder('='))
              for k, v in fields.items()}
    n = len(next(iter(fields.values())))
    return [{k: fields[k][i] for k in sorted(fields)} for i in range(n)]


def plain(name, a, chunks, **kw):
    """An array written by zarr, and its values as zarr reads them."""
    f = 'plain-%s.zarr' % name
    z = zarr.open_array(path(f), 'w', shape=a.shape, chunks=chunks,
                        dtype=a.dtype, **kw)
    z[...] = a
    got = zarr.open_array(path(f), 'r')[...]
    assert np.array_equal(got, a, equal_nan=a.dtype.kind == 'f')
    case('plain-' + name, f, samples(x=got))
    return path(f)


def make_plain():
    a = rng.integers(0, 200, (13, 5, 6, 4))
    for t in ('?', 'i1', '<i2', '>i2', '<i4', '>i4', '<i8', '>i8', 'u1', '<u2',
              '>u2', '<u4', '<u8', '>u8', '<f2', '>f2', '<f4', '>f4', '<f8',
              '>f8'):
        name = np.dtype(t).name + ('-big' if t[0] == '>' else '')
        plain(name, a.astype(t), (4, 2, 3, 3))
        if t[-1] in '14':
            plain(name + '-raw', a.astype(t), (4, 5, 6, 4), compressor=None)
    for i, chunks in enumerate([(1, 5, 6, 4), (1, 2, 6, 4), (13, 5, 6, 4),
                                (13, 1, 1, 1), (5, 5, 6, 4), (3, 5, 4, 3),
                                (20, 9, 9, 9)]):
        how = [numcodecs.Blosc(), numcodecs.Zlib(), numcodecs.GZip(),
               numcodecs.Zstd(), numcodecs.LZ4()][i % 5]
        plain('chunks-%d' % i, a.astype('i4'), chunks, compressor=how)
        plain('chunks-raw-%d' % i, a.astype('u2'), chunks, compressor=None)
        plain('F-%d' % i, a.astype('>i4'), chunks, order='F',
              compressor=how if i % 2 else None)
    plain('shuffle', a.astype('i4'), (4, 5, 2, 4), filters=[
        numcodecs.Shuffle(4)], compressor=numcodecs.Zlib())
    plain('one', np.arange(29, dtype='i4'), (7,))
    plain('deep', a.reshape(13, 5, 1, 3, 2, 1, 4), (2, 2, 1, 2, 2, 1, 3))
    plain('slash', a, (4, 2, 3, 3), dimension_separator='/')
    # chunks of fill values only are not stored
    b = np.full((9, 4, 4), 7, '>i4')
    b[4, 1, 1] = 1
    for i, chunks in enumerate([(2, 2, 2), (1, 4, 4), (3, 4, 4)]):
        for order in 'CF':
            for how in None, numcodecs.Zlib():
                f = plain('fill-%d-%s-%d' % (i, order, how is not None), b,
                          chunks, order=order, compressor=how, fill_value=7,
                          write_empty_chunks=False)
                assert len(os.listdir(f)) == 2
    plain('never', np.full((5, 3), 2.5), (2, 2), fill_value=2.5,
          write_empty_chunks=False)
    plain('nan', np.full((5, 3), np.nan, 'f4'), (2, 2), fill_value=np.nan,
          write_empty_chunks=False)
    # numbers that a double cannot represent
    for i, (t, v) in enumerate([
            ('i8', 2**63 - 1), ('i8', -2**63), ('i8', 2**53 + 1),
            ('u8', 2**64 - 1), ('u8', 2**63 + 1), ('i1', -128), ('u1', 255),
            ('?', True)]):
        plain('edge-%d' % i, np.full((5, 3), v, t), (2, 2), fill_value=v,
              write_empty_chunks=False)
    case('plain-file', 'plain-deep.zarr', [{'x': a.reshape(
        13, 5, 1, 3, 2, 1, 4)}], 'samples=file')
    case('plain-file-F', 'plain-F-1.zarr', [{'x': a.astype('i4')}],
         'samples=file')
    case('plain-named', 'plain-one.zarr', samples(x=np.arange(29, dtype='i4')),
         'fields=x')
    zarr.save_array(path('plain-scalar.zarr'), np.array(4.5))
    case('plain-scalar', 'plain-scalar.zarr', [{'x': np.float64(4.5)}],
         'samples=file')
    refuse('plain-scalar.zarr', 'no numeric array with a sample axis')
    zarr.save_array(path('plain-empty.zarr'), np.zeros((0, 3)))
    refuse('plain-empty.zarr', 'contains no samples')
    zarr.save_array(path('plain-flat.zarr'), np.zeros((3, 0)))
    refuse('plain-flat.zarr', 'declares 3 samples')
    refuse('plain-one.zarr', "no array 'y'; the store is a single array",
           'fields=y')
    for how in zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED:
        for name in 'int32', 'int32-big-raw', 'F-1', 'fill-0-C-1':
            f = 'plain-%s-%d.zarr.zip' % (name, how)
            zipped(f, 'plain-%s.zarr' % name, how=how)
            case(f, f, samples(x=zarr.open_array(
                path('plain-%s.zarr' % name), 'r')[...]))
    # groups
    g = zarr.open_group(path('plain-group.zarr'), 'w')
    img, w = a[:, :, :, 0].astype('u1'), a[:, 0, 0].astype('f4')
    g.array('img', img, chunks=(3, 5, 2))
    g.array('y', np.arange(13), chunks=5)
    g.array('deep/w', w, chunks=(4, 4), order='F')
    g.array('other', np.arange(3))
    g.array('setting', np.array(3))
    g.array('names', np.array(['u'] * 13, object),
            object_codec=numcodecs.VLenUTF8())
    case('plain-group', 'plain-group.zarr',
         samples(img=img, y=np.arange(13), deep__w=w))
    case('plain-pick', 'plain-group.zarr', [
        {'y': np.int64(i), 'img': img[i]} for i in range(13)], 'fields=y,img')
    case('plain-other', 'plain-group.zarr', samples(other=np.arange(3)),
         'fields=other')
    refuse('plain-group.zarr', "'y' has 13 samples, but 'other' has 3",
           'fields=other,y')
    refuse('plain-group.zarr', "no array 'nowhere'", 'fields=nowhere')
    refuse('plain-group.zarr', "'deep' is a group", 'fields=deep')
    refuse('plain-group.zarr', 'a field needs numbers', 'fields=names')
    # X among other arrays is not AnnData
    g = zarr.open_group(path('plain-xy.zarr'), 'w')
    g.array('X', w.astype('f8'), chunks=(4, 4))
    g.array('y', np.arange(13), chunks=5)
    case('plain-xy', 'plain-xy.zarr',
         samples(X=w.astype('f8'), y=np.arange(13)))
    g = zarr.open_group(path('plain-lengths.zarr'), 'w')
    g.array('a', np.arange(30.))
    g.array('b', np.arange(20.))
    refuse('plain-lengths.zarr', 'set fields=a')
    g = zarr.open_group(path('plain-sparse.zarr'), 'w')
    put_sparse(g, 'm', sp.csr_matrix(counts()))
    refuse('plain-sparse.zarr', "group 'm' is a sparse matrix")
    g = zarr.open_group(path('plain-nothing.zarr'), 'w')
    refuse('plain-nothing.zarr', 'has no numeric array')
    # version 3, and shards
    x = a.astype('f4')
    for i, how in enumerate(CODECS):
        v3_array('plain-v3-%s.zarr' % how, x, (4, 2, 6, 4), CODECS[how])
        case('plain-v3-' + how, 'plain-v3-%s.zarr' % how, samples(x=x))
        v3_array('plain-shard-%s.zarr' % how, x, (2, 1, 3, 4), CODECS[how],
                 shard=(4, 4, 3, 8), big=i % 2 == 1, first=i % 3 == 1)
        case('plain-shard-' + how, 'plain-shard-%s.zarr' % how, samples(x=x))
    v3_array('plain-v3-0.zarr', b, (2, 2, 2), fill=7, skip=True, keys='v2')
    case('plain-v3-0', 'plain-v3-0.zarr', samples(x=b))
    v3_group('plain-v3-group.zarr')
    v3_array('plain-v3-group.zarr/img', img, (3, 5, 2), CODECS['zstd'],
             shard=(6, 5, 6))
    v3_array('plain-v3-group.zarr/y', np.arange(13), (5,))
    case('plain-v3-group', 'plain-v3-group.zarr',
         samples(img=img, y=np.arange(13)))
    # damaged
    damaged = [('shape', [1 << 50, 5, 6, 4], 'declares'),
               ('shape', [13, 1 << 40, 1 << 40, 4], ''),
               ('shape', 'x', 'shape'), ('shape', [13, 5, 6], 'chunks'),
               ('chunks', [0, 2, 3, 3], 'contains a 0'),
               ('chunks', [4, 2, 3], 'chunks'), ('dtype', 'i', 'numbers'),
               ('chunks', [1 << 31, 1 << 31, 3, 3], '4 GiB'),
               ('compressor', {'id': 'none'}, "codec 'none'"),
               ('shape', [1] * 33, 'axes'), ('fill_value', {}, 'fill_value'),
               ('fill_value', 2**31, 'fill_value'),
               ('fill_value', 1.5, 'fill_value'),
               ('fill_value', -2**31 - 1, 'fill_value'),
               ('fill_value', 10**30, 'fill_value'),
               ('fill_value', 'NaN', 'fill_value'), ('order', 'A', 'order')]
    for i, (key, v, text) in enumerate(damaged):
        f = 'plain-wrong-%d.zarr' % i
        shutil.copytree(path('plain-int32.zarr'), path(f))
        edit('.zarray', **{key: v})(path(f))
        refuse(f, text)


# ---- version 3, by hand ----

def put_json(name, v):
    mf.put(os.path.join(name, 'zarr.json'), json.dumps(v).encode())


def v3_group(name, **attrs):
    put_json(name, {'zarr_format': 3, 'node_type': 'group',
                    'attributes': {k.replace('_', '-') if k != '_index' else k:
                                   v for k, v in attrs.items()}})


CODECS = {
    'none': [], 'zstd': [('zstd', {'level': 3, 'checksum': False})],
    'gzip': [('gzip', {'level': 5})],
    'blosc': [('blosc', {'cname': 'lz4', 'clevel': 5, 'shuffle': 'shuffle',
                         'typesize': 4, 'blocksize': 0})],
    'blosc-blocks': [('blosc', {'cname': 'lz4', 'clevel': 5, 'typesize': 4,
                                'shuffle': 'shuffle', 'blocksize': 16384})],
    'crc': [('crc32c', None)],
    'zstd-crc': [('zstd', {'level': 1, 'checksum': True}), ('crc32c', None)],
    'numcodecs': [('numcodecs.shuffle', {'elementsize': 4}),
                  ('numcodecs.lz4', {'acceleration': 1})],
}


def encode(b, codecs):
    for name, c in codecs:
        if name == 'zstd':
            b = numcodecs.Zstd(c['level']).encode(b)
        elif name == 'gzip':
            b = numcodecs.GZip(c['level']).encode(b)
        elif name == 'blosc':
            a = np.frombuffer(b, 'V%d' % c['typesize']) \
                if len(b) % c['typesize'] == 0 else b
            b = numcodecs.Blosc(c['cname'], c['clevel'],
                                blocksize=c['blocksize']).encode(
                np.frombuffer(a, 'u4') if c['typesize'] == 4 else a)
        elif name == 'crc32c':
            b = bytes(b) + struct.pack('<I', mf.crc32c(b))
        elif name == 'numcodecs.shuffle':
            b = np.frombuffer(b, 'u1').reshape(-1, 4).T.tobytes()
        elif name == 'numcodecs.lz4':
            b = numcodecs.LZ4().encode(b)
        b = bytes(b)
    return b


def described(codecs):
    return [{'name': n, 'configuration': c} if c is not None else {'name': n}
            for n, c in codecs]


def to_bytes(a, big):
    if a.dtype == object:
        b = struct.pack('<I', a.size)
        for s in a.ravel():
            s = s.encode()
            b += struct.pack('<I', len(s)) + s
        return b
    return a.astype(a.dtype.newbyteorder('>' if big else '<')).tobytes()


def blocks(a, chunk, fill):
    """The chunks of an array, each padded, by their position in the grid."""
    grid = [range(-(-n // c)) for n, c in zip(a.shape, chunk)]
    for at in itertools.product(*grid):
        b = np.full(chunk, fill, a.dtype)
        part = a[tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunk))]
        b[tuple(slice(0, n) for n in part.shape)] = part
        yield at, b


def v3_array(name, a, chunk=None, codecs=(), shard=None, big=False, fill=None,
             keys='default', sep=None, first=False, crc=True, attrs=None,
             data_type=None, skip=False):
    a = np.asarray(a)
    text = a.dtype == object
    chunk = tuple(chunk or (max(n, 1) for n in a.shape))
    fill = fill if fill is not None else '' if text else 0
    inner = [{'name': 'vlen-utf8'} if text else
             {'name': 'bytes', 'configuration':
              {'endian': 'big' if big else 'little'}}] + described(codecs)
    index = [{'name': 'bytes', 'configuration': {'endian': 'little'}}]
    if crc:
        index.append({'name': 'crc32c'})
    encoding = {'name': keys}
    if sep:
        encoding['configuration'] = {'separator': sep}
    put_json(name, {
        'zarr_format': 3, 'node_type': 'array', 'shape': list(a.shape),
        'data_type': data_type or ('string' if text else a.dtype.name),
        'chunk_grid': {'name': 'regular', 'configuration':
                       {'chunk_shape': list(shard or chunk)}},
        'chunk_key_encoding': encoding,
        'fill_value': 'NaN' if fill != fill else fill,
        'codecs': inner if not shard else [
            {'name': 'sharding_indexed', 'configuration': {
                'chunk_shape': list(chunk), 'codecs': inner,
                'index_codecs': index,
                'index_location': 'start' if first else 'end'}}],
        'attributes': attrs or {}})
    sep = sep or ('/' if keys == 'default' else '.')
    for at, b in blocks(a, shard or chunk, fill):
        key = sep.join((['c'] if keys == 'default' else []) +
                       [str(i) for i in at])
        if shard:
            data = v3_shard(b, chunk, codecs, fill, big, first, crc)
            if data is None:
                continue
        elif skip and (b == fill).all():
            continue
        else:
            data = encode(to_bytes(b, big), codecs)
        mf.put(os.path.join(name, key), data)


def v3_shard(shard, chunk, codecs, fill, big, first, crc):
    body, index = b'', []
    n = int(np.prod([s // c for s, c in zip(shard.shape, chunk)]))
    start = n * 16 + 4 * crc if first else 0
    for _, b in blocks(shard, chunk, fill):
        if (b == fill).all():
            index.append((2**64 - 1, 2**64 - 1))
            continue
        data = encode(to_bytes(b, big), codecs)
        index.append((start + len(body), len(data)))
        body += data
    if all(i[0] == 2**64 - 1 for i in index):
        return None
    # in any order, and with gaps: readers use the index
    table = b''.join(struct.pack('<QQ', *i) for i in index)
    if crc:
        table += struct.pack('<I', mf.crc32c(table))
    return table + body if first else body + table


def v3_frame(name, length, columns=None):
    columns = columns or {}
    v3_group(name, encoding_type='dataframe', encoding_version='0.2.0',
             _index='_index', column_order=list(columns))
    v3_array(name + '/_index', np.array(
        ['%s%d' % (os.path.basename(name)[0], i) for i in range(length)],
        object), attrs={'encoding-type': 'string-array'})
    for k, v in columns.items():
        v3_array(name + '/' + k, v, chunk=(4,))


def v3_sparse(name, m, index='i4', data=None, indptr='i8', **kw):
    v3_group(name, encoding_type='csr_matrix', encoding_version='0.1.0',
             shape=list(m.shape))
    v3_array(name + '/data', m.data.astype(data or m.dtype), **kw)
    v3_array(name + '/indices', m.indices.astype(index), **kw)
    v3_array(name + '/indptr', m.indptr.astype(indptr))


def v3_store(name, m, columns=None, **kw):
    v3_group(name, encoding_type='anndata', encoding_version='0.1.0')
    v3_sparse(name + '/X', sp.csr_matrix(m), **kw)
    v3_frame(name + '/obs', m.shape[0], columns)
    v3_frame(name + '/var', m.shape[1])
    v3_group(name + '/layers', encoding_type='dict')


def make_v3():
    m = counts()
    for (name, c), shard in itertools.product(
            CODECS.items(), (None, 'end', 'start', 'bare')):
        f = 'v3-%s-%s.zarr' % (name, shard)
        first, crc = shard == 'start', shard != 'bare'
        kw = dict(codecs=c, first=first, crc=crc)
        v3_store(f, m, chunk=(13,), shard=(52,) if shard else None, **kw)
        v3_array(f + '/layers/d', m, (5, 6), shard=(10, 18) if shard else None,
                 **kw)
        v3_array(f + '/layers/fill', np.where(m > 2, m, 7).astype('f8'),
                 (2, 3), shard=(4, 6) if shard else None, fill=7., skip=True,
                 **kw)
        case(f, f, rows(m))
        case(f + '-csr', f, lists(m), 'output=csr')
        case(f + '-d', f, rows(m), 'matrix=layers/d')
        case(f + '-fill', f, rows(np.where(m > 2, m, 7)),
             'matrix=layers/fill')
        zipped(f + '.zip', f)
        case(f + '.zip', f + '.zip', rows(m))
        case(f + '.zip-d', f + '.zip', rows(m), 'matrix=layers/d')
    for keys, sep in ('default', '.'), ('v2', None), ('v2', '/'):
        f = 'v3-keys-%s-%d.zarr' % (keys, sep == '/')
        v3_store(f, m, chunk=(20,), keys=keys, sep=sep)
        v3_array(f + '/layers/d', m, (5, 6), keys=keys, sep=sep)
        case(f, f, rows(m))
        case(f + '-d', f, rows(m), 'matrix=layers/d')
    for t in ('i1', 'u2', 'i4', 'i8', 'u8', 'f2', 'f4', 'f8'):
        f = 'v3-%s.zarr' % t
        v3_store(f, m, chunk=(20,), data=t, index='u2', big=True)
        case(f, f, rows(m))
    words = ['b', 'a', 'Zo\u00eb', '', 'b'] * 7 + ['x', 'y']
    f = 'v3-obs.zarr'
    v3_store(f, m, {'n': np.arange(N), 'flag': np.arange(N) % 3 == 0,
                    'words': np.array(words, object)})
    o = f + '/obs/'
    v3_array(o + 'zwords', np.array(words, object), (10,), CODECS['zstd'])
    v3_array(o + 'swords', np.array(words, object), (5,), CODECS['zstd'],
             shard=(20,))
    v3_array(o + 'wide', np.array(words), (8,), CODECS['gzip'], fill='',
             data_type={'name': 'fixed_length_utf32', 'configuration':
                        {'length_bytes': np.array(words).dtype.itemsize}})
    v3_group(o + 'cat', encoding_type='categorical', ordered=False)
    v3_array(o + 'cat/codes', np.arange(N).astype('i1') % 3 - 1)
    v3_array(o + 'cat/categories', np.array(['p', 'q'], object))
    v3_group(o + 'maybe', encoding_type='nullable-integer')
    v3_array(o + 'maybe/values', np.arange(N))
    v3_array(o + 'maybe/mask', np.arange(N) % 2 == 0)
    cols = {'n': np.arange(N), 'flag': np.arange(N) % 3 == 0,
            'words': text_codes(words), 'zwords': text_codes(words),
            'swords': text_codes(words), 'wide': text_codes(words),
            'cat': (np.arange(N) % 3 - 1).astype('i4'),
            'maybe': np.where(np.arange(N) % 2 == 0, np.nan, np.arange(N))}
    case('v3-obs', f, rows(m, **cols), 'obs=' + ','.join(cols))
    zipped('v3-obs.zarr.zip', f)
    case('v3-obs-zip', 'v3-obs.zarr.zip', rows(m, **cols),
         'obs=' + ','.join(cols))
    v3_array('v3-alone.zarr', m, (8, 8), CODECS['blosc'], shard=(16, 24))
    case('v3-alone', 'v3-alone.zarr', rows(m), 'matrix=.')


# ---- missing chunks ----

def warn(file, kind, text='', *options):
    mf.warn(' '.join([file] + ['format.' + o for o in options]), kind, text)


def blank(name, i, n, first):
    """Removes inner chunk i of n."""
    with open(path(name), 'rb') as f:
        b = bytearray(f.read())
    at = 0 if first else len(b) - 16 * n - 4
    b[at + 16 * i:at + 16 * i + 16] = b'\xff' * 16
    b[at + 16 * n:at + 16 * n + 4] = struct.pack(
        '<I', mf.crc32c(bytes(b[at:at + 16 * n])))
    mf.put(name, bytes(b))


def lost(f, g, change, *warned):
    """Store g is f after a change: as a directory, and as an archive."""
    shutil.copytree(path(f), path(g))
    change(path(g))
    zipped(g + '.zip', g)
    for x in g, g + '.zip':
        warn(x, *warned)


def make_absent():
    m = counts()
    by_hand('whole-v2.zarr', m, chunks=20).array('layers/d', m, chunks=(8, 9))
    by_hand('whole-blocks.zarr', sp.csr_matrix(np.ones((200, 200), 'f4')),
            chunks=20000, compressor=numcodecs.Blosc('lz4', 5,
                                                     blocksize=16384))
    v3_store('whole-v3.zarr', m, {'n': np.arange(N)}, chunk=(20,))
    v3_array('whole-v3.zarr/layers/d', m, (8, 9), shard=(16, 18))
    for where in 'end', 'start':
        v3_store('whole-%s.zarr' % where, m, chunk=(13,), shard=(52,),
                 first=where == 'start', codecs=CODECS['zstd'])
    for f in ('v2', 'v3', 'blocks', 'end', 'start'):
        warn('whole-%s.zarr' % f, 'none')
        warn('whole-%s.zarr' % f, 'none', '', 'output=csr')
    n = len(os.listdir(path('whole-v2.zarr/X/data'))) - 1
    # equal indices are wrong if a row has two of them; values that are all 0
    # are odd, but possible
    for a, bad, so in (('data', 'note', '; zarr omits chunks that contain '
                        'nothing else'),
                       ('indices', 'bad', ': the matrix is wrong; copy the '
                        'data again')):
        lost('whole-v2.zarr', 'lost-v2-%s.zarr' % a, lambda f: (
            os.remove(f + '/X/%s/1' % a), os.remove(f + '/X/%s/3' % a)),
            bad, '2 of %d chunks are not stored (X/%s/1, X/%s/3) and read as '
            'the fill value%s' % (n, a, a, so))
        lost('whole-v2.zarr', 'lost-all-%s.zarr' % a, lambda f: [
            os.remove(f + '/X/%s/%d' % (a, i)) for i in range(n)],
            bad, '%d of %d chunks are not' % (n, n))
        lost('whole-blocks.zarr', 'lost-blocks-%s.zarr' % a, lambda f:
             os.remove(f + '/X/%s/1' % a), bad, '1 of 2 chunks is not')
        lost('whole-v3.zarr', 'lost-v3-%s.zarr' % a, lambda f:
             os.remove(f + '/X/%s/c/2' % a), bad, 'X/%s/c/2' % a)
        for k in 'end', 'start':
            lost('whole-%s.zarr' % k, 'lost-%s-%s.zarr' % (k, a), lambda f:
                 os.remove(f + '/X/%s/c/1' % a), bad, '4 of')
            lost('whole-%s.zarr' % k, 'lost-inner-%s-%s.zarr' % (k, a),
                 lambda f: blank(os.path.relpath(f, mf.out) +
                                 '/X/%s/c/1' % a, 2, 4, k == 'start'),
                 bad, 'chunk 6 in X/%s/c/1' % a)
    # one value per row: its gene may be the first one
    ones = np.zeros((40, 6), 'f4')
    ones[:, 0] = 1
    by_hand('ones.zarr', ones, chunks=8, write_empty_chunks=False)
    assert len(os.listdir(path('ones.zarr/X/indices'))) == 1
    warn('ones.zarr', 'note', 'zarr omits chunks')
    case('ones', 'ones.zarr', rows(ones))
    ones[20, 0:2] = 1
    by_hand('twos.zarr', ones, chunks=8, write_empty_chunks=False)
    warn('twos.zarr', 'note', 'zarr omits chunks')
    lost('twos.zarr', 'lost-twos.zarr', lambda f:
         os.remove(f + '/X/indices/2'), 'bad', 'the matrix is wrong')
    # empty rows at the start: the next offset shows whether they are
    e = np.zeros((9, 4), 'f4')
    e[4:] = 1
    g = by_hand('starts.zarr', e, chunks=2, write_empty_chunks=False)
    assert not os.path.exists(path('starts.zarr/X/indptr/0'))
    assert g['X/indptr'][4] == 0
    warn('starts.zarr', 'none')
    lost('starts.zarr', 'lost-starts.zarr', lambda f:
         os.remove(f + '/X/indptr/2'), 'bad', 'X/indptr/0, X/indptr/1, X/indpt')
    warn('empty.zarr', 'none')
    one = by_hand('one-gene.zarr', np.ones((9, 1), 'f4'), chunks=4,
                  write_empty_chunks=False)
    assert not one['X/indices'].nchunks_initialized
    warn('one-gene.zarr', 'note', 'zarr omits chunks')
    # dense matrices, and columns
    for f, key in ('v2', '1.2'), ('v3', 'c/1/0'):
        shutil.copytree(path('whole-%s.zarr' % f), path('lost-d-%s.zarr' % f))
        os.remove(path('lost-d-%s.zarr/layers/d/%s' % (f, key)))
        zipped('lost-d-%s.zarr.zip' % f, 'lost-d-%s.zarr' % f)
        for x in '', '.zip':
            warn('lost-d-%s.zarr%s' % (f, x), 'note',
                 'not stored (layers/d/%s) and read' % key, 'matrix=layers/d')
            warn('lost-d-%s.zarr%s' % (f, x), 'none')
    lost('whole-v3.zarr', 'lost-obs.zarr', lambda f:
         os.remove(f + '/obs/n/c/0'), 'none')
    warn('lost-obs.zarr', 'note', 'obs/n/c/0', 'obs=n')
    warn('missing-2.5.zarr', 'note', 'zarr omits chunks', 'matrix=layers/d')
    warn('missing-0.zarr', 'none')


# ---- several stores ----

def make_many():
    parts = [counts(9, G), counts(14, G), counts(4, G)]
    for i, m in enumerate(parts):
        if i == 1:
            v3_store('many/%d.zarr' % i, m)
        else:
            by_hand('many/%d.zarr' % i, m, chunks=11)
    case('many', 'many', rows(np.concatenate(parts)))
    case('many-csr', 'many', lists(np.concatenate(parts)), 'output=csr')
    case('many-glob', 'many/*.zarr', rows(np.concatenate(parts)))
    os.makedirs(path('zips'))
    for i in range(3):
        zipped('zips/%d.zarr.zip' % i, 'many/%d.zarr' % i)
    case('zips', 'zips', rows(np.concatenate(parts)))
    v3_group('annbatch.zarr', encoding_type='annbatch-preshuffled',
             encoding_version='0.1.0')
    for i, m in enumerate(parts):
        v3_store('annbatch.zarr/dataset_%d' % i, m, chunk=(16,), shard=(64,),
                 codecs=CODECS['blosc'], index='u2',
                 columns={'n': np.arange(len(m))})
    n = np.concatenate([np.arange(len(m)) for m in parts])
    case('annbatch', 'annbatch.zarr', rows(np.concatenate(parts), n=n),
         'obs=n')
    zipped('annbatch.zarr.zip', 'annbatch.zarr')
    refuse('annbatch.zarr.zip', 'collection')
    # mixed with other files
    shutil.copytree(path('many'), path('mixed'))
    mf.put('mixed/a.npy', b'no npy')
    refuse('mixed', 'choose one with format=')


# ---- invalid stores ----

def wrong(name, text, change, *options, v3=False):
    m = np.arange(30).reshape(6, 5).astype('f4')
    f = 'wrong-%s.zarr' % name
    if v3:
        v3_store(f, m, {'n': np.arange(6)}, chunk=(8,), shard=(16,),
                 codecs=CODECS['gzip'])
    else:
        g = by_hand(f, m, chunks=8, compressor=numcodecs.GZip())
        g['obs'].array('n', np.arange(6))
    change(path(f))
    refuse(f, text, *options)
    if os.path.exists(path(f)):
        zipped(f + '.zip', f)
        refuse(f + '.zip', text, *options)


def edit(doc, **members):
    def change(f):
        p = os.path.join(f, doc)
        v = json.load(open(p))
        v.update(members)
        json.dump(v, open(p, 'w'))
    return change


def write(name, data):
    def change(f):
        with open(os.path.join(f, name), 'wb') as o:
            o.write(data)
    return change


def make_wrong():
    d = 'X/data/.zarray'
    wrong('json', 'not valid JSON', write(d, b'{"shape": [1,'))
    wrong('json-list', 'not a JSON object', write(d, b'[1]'))
    wrong('json-empty', 'is empty', write(d, b''))
    wrong('json-deep', 'nested too deeply', write(d, b'[' * 100))
    wrong('json-more', 'more than one value', write(d, b'{} {}'))
    wrong('json-text', 'invalid character', write(d, b'{"a": "\n"}'))
    wrong('shape', 'but indices has', edit(d, shape=[24]))
    wrong('shape-text', "invalid shape in the metadata (found 'many')",
          edit(d, shape='many'))
    wrong('shape-minus', '(found -3)', edit(d, shape=[-3]))
    wrong('shape-half', '(found 2.5)', edit(d, shape=[2.5]))
    wrong('shape-null', '(found something else)', edit(d, shape=[None]))
    wrong('shape-axes', 'axes', edit(d, shape=[1, 2, 3], chunks=[1, 2, 3]))
    wrong('shape-big', 'a thousand times', edit(d, shape=[2**30]))
    wrong('shape-huge', 'too many chunks', edit(d, shape=[2**50]))
    wrong('rows', 'cannot decode to', edit('X/indptr/.zarray', shape=[2**31],
                                        chunks=[2**28]))
    wrong('rows-none', 'can contain', lambda f: (
        edit('X/indptr/.zarray', shape=[2**31], chunks=[2**28])(f),
        os.remove(f + '/X/indptr/0')))
    wrong('dense-rows', 'can contain', lambda f: (
        shutil.rmtree(f + '/X'), zarr.open(f).create(
            'X', shape=(2**40, 3), chunks=(2**25, 3), dtype='f4')))
    wrong('chunks', 'invalid chunks in the metadata (found a list of 2)',
          edit(d, chunks=[8, 8]))
    wrong('chunks-none', 'the chunk shape contains', edit(d, chunks=[0]))
    wrong('chunks-big', '4 GiB', edit(d, chunks=[2**31]))
    wrong('chunks-long', 'cannot decode to', edit(d, chunks=[2**27]))
    wrong('type', '<c8', edit(d, dtype='<c8'))
    wrong('type-list', 'structures', edit(d, dtype=[['a', '<f4']]))
    wrong('codec', 'bz2', edit(d, compressor={'id': 'bz2', 'level': 1}))
    wrong('codec-lzma', 'lzma', edit(d, compressor={'id': 'lzma'}))
    wrong('codec-inflate', 'unknown', edit(d, compressor={'id': 'inflate'}))
    wrong('codec-none', 'codec', edit(d, compressor={}))
    wrong('filter', 'delta', edit(d, filters=[{'id': 'delta',
                                               'dtype': '<f4'}]))
    wrong('fill', "invalid fill_value in the metadata (found 'black')",
          edit(d, fill_value='black'))
    wrong('separator', 'dimension_separator', edit(
        d, dimension_separator='-'))
    wrong('objects', 'vlen-utf8', edit('obs/n/.zarray', dtype='|O'), 'obs=n')
    wrong('pickle', 'pickle', edit('obs/n/.zarray', dtype='|O', filters=[
        {'id': 'pickle'}]), 'obs=n')
    wrong('truncated', 'unpack', lambda f: os.truncate(
        f + '/X/data/1', 20))
    wrong('chunk-empty', 'unpack', write('X/data/1', b''))
    wrong('chunk-other', 'unpack', write('X/data/1', b'x' * 40))
    wrong('chunk-short', 'unexpected size', write(
        'X/data/1', numcodecs.GZip().encode(b'x' * 16)))
    wrong('starts', 'unpack', write('X/indptr/0', b'x' * 40))
    wrong('kind', 'not a matrix', edit('X/.zattrs', **{
        'encoding-type': 'dict'}))
    wrong('no-shape', 'no shape attribute', edit('X/.zattrs', shape=[6]))
    wrong('no-data', "no object 'data'", lambda f: shutil.rmtree(
        f + '/X/data'))
    wrong('no-X', 'no such matrix', lambda f: shutil.rmtree(f + '/X'))
    wrong('group', 'a group; expected', lambda f: (
        shutil.rmtree(f + '/X/data'), os.mkdir(f + '/X/data'),
        write('X/data/.zgroup', b'{"zarr_format": 2}')(f)))
    wrong('gene', 'refers to gene 77', write(
        'X/indices/0', numcodecs.GZip().encode(
            np.array([0, 1, 77, 3, 4, 0, 1, 2], 'i4'))))
    mf.put('bad.zarr.zip', b'no archive' * 30)
    refuse('bad.zarr.zip', 'zip')
    with zipfile.ZipFile(path('other.zarr.zip'), 'w') as z:
        z.writestr('readme', 'nothing')
    refuse('other.zarr.zip', 'does not contain a zarr store')
    os.makedirs(path('hollow.zarr'))
    mf.put('hollow.zarr/readme', b'nothing')
    refuse('hollow.zarr', 'no samples')


def make_wrong_blocks():
    """Damages the header or block offsets of a chunk of several blocks."""
    m = sp.csr_matrix(np.ones((200, 200), 'f4'))
    for name, at, value in (
            ('version', 0, b'\x09'), ('flags', 2, b'\xe1'),
            ('item', 3, b'\0'), ('size', 4, b'\x10\x10\0\0'),
            ('size-big', 4, b'\xff\xff\xff\x7f'), ('block', 8, b'\0' * 4),
            ('block-big', 8, b'\0\0\0\x40'), ('block-minus', 8, b'\xff' * 4),
            ('stored', 12, b'\xff\xff\0\0'), ('start', 16, b'\0' * 4),
            ('start-far', 20, b'\0\0\1\0'), ('start-minus', 20, b'\xff' * 4),
            ('stream', 24, b'\xff' * 4), ('short', None, None)):
        for chunk in '0', '1':
            f = 'wrong-blocks-%s-%s.zarr' % (name, chunk)
            by_hand(f, m, chunks=20000, compressor=numcodecs.Blosc(
                'lz4', 5, blocksize=16384))
            p = path(f + '/X/data/' + chunk)
            with open(p, 'r+b') as o:
                if at is None:
                    o.truncate(21)
                else:
                    o.seek(at)
                    o.write(value)
            refuse(f, 'unpack')
            zipped(f + '.zip', f)
            refuse(f + '.zip', 'unpack')


def make_wrong_v3():
    d = 'X/data/zarr.json'

    def codecs(*c):
        return edit(d, codecs=[{'name': n, 'configuration': k}
                               for n, k in c])
    inner = {'chunk_shape': [8], 'codecs': [{'name': 'bytes'}],
             'index_codecs': [{'name': 'bytes'}, {'name': 'crc32c'}]}
    wrong('v3-node', 'node_type', edit(d, node_type='thing'), v3=True)
    wrong('v3-grid', 'rectangular', edit(d, chunk_grid={
        'name': 'rectangular'}), v3=True)
    wrong('v3-keys', 'chunk_key_encoding', edit(d, chunk_key_encoding={
        'name': 'hashed'}), v3=True)
    wrong('v3-type', 'complex64', edit(d, data_type='complex64'), v3=True)
    wrong('v3-transpose', 'transpose', codecs(
        ('transpose', {'order': [0]}), ('bytes', {})), v3=True)
    wrong('v3-codec', 'bz2', codecs(('bytes', {}), ('bz2', {})), v3=True)
    wrong('v3-none', 'codecs', codecs(), v3=True)
    wrong('v3-nested', 'sharding_indexed', codecs(
        ('sharding_indexed', dict(inner, codecs=[
            {'name': 'sharding_indexed', 'configuration': inner}]))), v3=True)
    wrong('v3-packed', 'as a whole', codecs(
        ('sharding_indexed', inner), ('gzip', {})), v3=True)
    wrong('v3-multiple', 'chunk_shape', codecs(
        ('sharding_indexed', dict(inner, chunk_shape=[7]))), v3=True)
    wrong('v3-outer', 'chunk shape', edit(
        d, chunk_grid={'name': 'regular',
                       'configuration': {'chunk_shape': [0]}},
        codecs=[{'name': 'sharding_indexed', 'configuration': inner}]),
          v3=True)
    wrong('v3-location', 'index_location', codecs(
        ('sharding_indexed', dict(inner, index_location='middle'))), v3=True)
    wrong('v3-index', 'shard index is encoded', codecs(
        ('sharding_indexed', dict(inner, index_codecs=[
            {'name': 'gzip'}]))), v3=True)
    wrong('v3-transformers', 'transformers', edit(
        d, storage_transformers=[{'name': 'x'}]), v3=True)
    wrong('v3-shard-short', 'shorter than its index: X/data/c/0', write(
        'X/data/c/0', b'x' * 10), v3=True)
    wrong('v3-shard-crc', 'checksum', write(
        'X/data/c/0', b'x' * 100), v3=True)

    def shard(*index):
        t = b''.join(struct.pack('<QQ', *i) for i in index)
        return write('X/data/c/0', b'x' * 50 + t +
                     struct.pack('<I', mf.crc32c(t)))
    wrong('v3-shard-outside', 'points outside', shard((0, 10), (80, 30)),
          v3=True)
    wrong('v3-shard-wrap', 'points outside', shard((2**64 - 8, 16), (0, 1)),
          v3=True)
    wrong('v3-shard-chunk', 'unpack', shard((0, 40), (10, 40)), v3=True)


# ---- to be damaged, and to be read in any order ----

def make_tiny():
    m = np.array([[0, 1, 2], [0, 0, 0], [3, 0, 4], [5, 6, 7]], 'f4')
    for i in range(4):
        f = 'tiny-%d.zarr' % i
        if i == 0:
            g = zarr.group(zarr.DirectoryStore(path(f)))
            put_sparse(g, 'X', sp.csr_matrix(m), chunks=4)
            put_frame(g, 'obs', 4)
            c = g['obs'].create_group('kind')
            c.array('codes', np.array([0, 1, -1, 0], 'i1'))
            c.array('categories', np.array(['u', 'v'], object),
                    object_codec=numcodecs.VLenUTF8())
        elif i == 1:
            v3_group(f)
            v3_sparse(f + '/X', sp.csr_matrix(m), chunk=(2,), shard=(4,),
                      codecs=CODECS['zstd'])
            v3_group(f + '/obs', _index='_index', column_order=['kind'])
            v3_array(f + '/obs/kind', np.array(['u', 'v', 'u', 'w'], object),
                     (2,), CODECS['gzip'])
        elif i == 3:
            g = zarr.group(zarr.DirectoryStore(path(f)))
            put_sparse(g, 'X', sp.csr_matrix(np.ones((200, 200), 'f4')),
                       chunks=20000, compressor=numcodecs.Blosc(
                           'lz4', 5, blocksize=16384))
            put_frame(g, 'obs', 200, kind=np.arange(200))
        else:
            v3_group(f)
            v3_array(f + '/X', m, (2, 2), CODECS['blosc'])
            v3_group(f + '/obs')
            v3_array(f + '/obs/kind', np.arange(4))
        zipped('tiny-%d.zip' % i, f, how=zipfile.ZIP_DEFLATED if i == 2
               else zipfile.ZIP_STORED)


def make_big():
    m = sp.random(3000, 200, 0.1, 'csr', 'f4', 11)
    m.data = np.ceil(m.data * 9)
    label = np.arange(3000).astype('i4') // 100
    for kind in 'v2', 'v3', 'shards', 'none':
        f = 'big-%s.zarr' % kind
        if kind in ('v2', 'none'):
            g = zarr.group(zarr.DirectoryStore(path(f)))
            kw = {'compressor': None} if kind == 'none' else {}
            put_sparse(g, 'X', m, chunks=4000, **kw)
            put_frame(g, 'obs', 3000, label=label)
        else:
            v3_group(f)
            v3_sparse(f + '/X', m, chunk=(1000,), codecs=CODECS['zstd'],
                      shard=(20000,) if kind == 'shards' else None)
            v3_group(f + '/obs', _index='_index', column_order=['label'])
            v3_array(f + '/obs/label', label)
        case('big-' + kind, f, rows(m, label=label), 'obs=label')
        case('big-%s-csr' % kind, f, lists(m, label=label), 'obs=label',
             'output=csr')


def make_archive(folder):
    for f in sorted(os.listdir(folder)):
        if not f.endswith('.zarr.zip'):
            continue
        shutil.copy(os.path.join(folder, f), path(f))
        a = anndata.read_h5ad(os.path.join(folder, f[:-9] + '.h5ad'))
        if a.X is None:
            refuse(f, 'no such matrix')
            continue
        cols = {}
        for c in a.obs:
            v = a.obs[c]
            cols[c] = coded(v) if hasattr(v, 'cat') else v.values
        m = a.X.toarray() if sp.issparse(a.X) else np.asarray(a.X)
        case('old-' + f, f, rows(m, **cols), 'obs=' + ','.join(cols))
        case('old-csr-' + f, f, lists(m, **cols), 'obs=' + ','.join(cols),
             'output=csr')
        for layer in a.layers:
            x = a.layers[layer]
            if sp.issparse(x) and x.format != 'csr':
                continue
            case('old-%s-%s' % (layer, f), f, rows(x),
                 'matrix=layers/' + layer)
        if a.raw is not None:
            case('old-raw-' + f, f, rows(a.raw.X), 'matrix=raw')


def main():
    mf.out = sys.argv[1]
    os.makedirs(mf.out)
    make_anndata()
    make_compressors()
    make_blocks()
    make_types()
    make_missing()
    make_obs_kinds()
    make_alone()
    make_plain()
    make_v3()
    make_absent()
    make_many()
    make_wrong()
    make_wrong_blocks()
    make_wrong_v3()
    make_tiny()
    make_big()
    if len(sys.argv) > 2 and os.path.isdir(sys.argv[2]):
        make_archive(sys.argv[2])
    mf.put('manifest', '\n'.join(mf.manifest).encode() + b'\n')
    mf.put('refused', '\n'.join(mf.refused).encode() + b'\n')
    mf.put('warned', '\n'.join(mf.warned).encode() + b'\n')


main()
