#!/usr/bin/python3
"""AnnData files for the tests, and what is in them.

    make_h5ad.py DIRECTORY [ARCHIVE]

Written by anndata itself in every variant it has, and by h5py where anndata
of today no longer writes or not yet (older generations, other index types,
damage). ARCHIVE: a directory with files of other versions of anndata. The
lists are those of make_formats.py. Files tiny-*.h5ad are small, to be damaged
in every place.
"""
import os
import sys
import warnings

import anndata
import h5py
import numpy as np
import pandas as pd
import scipy.sparse as sp

import make_formats as mf

warnings.simplefilter('ignore')
rng = np.random.default_rng(5)
N, G = 37, 23
STR = h5py.string_dtype()


def path(name):
    return os.path.join(mf.out, name)


def counts(n=N, g=G, dtype=np.float32):
    m = rng.poisson(0.6, (n, g)).astype(dtype)
    m[3] = m[n - 1] = 0
    return m


def rows(m, dtype=np.float32, **more):
    m = np.asarray(m.todense()) if sp.issparse(m) else np.asarray(m)
    return [{'X': m[i].astype(dtype),
             **{k: v[i] for k, v in more.items()}} for i in range(len(m))]


def lists(m, dtype=np.float32, **more):
    m = sp.csr_matrix(m)
    return [{'X_data': m.data[m.indptr[i]:m.indptr[i + 1]].astype(dtype),
             'X_indices': m.indices[m.indptr[i]:m.indptr[i + 1]].astype('i4'),
             **{k: v[i] for k, v in more.items()}} for i in range(m.shape[0])]


def some(m, order, dtype=np.float32, **more):
    """Lists of some columns, as stored, numbered as they are chosen."""
    m = sp.csr_matrix(m)
    to = {g: i for i, g in enumerate(order)}
    out = []
    for i in range(m.shape[0]):
        at = [k for k in range(m.indptr[i], m.indptr[i + 1])
              if m.indices[k] in to]
        out.append({'X_data': m.data[at].astype(dtype), 'X_indices': np.array(
            [to[m.indices[k]] for k in at], 'i4'),
            **{k: v[i] for k, v in more.items()}})
    return out


def case(name, file, samples, *options):
    mf.want(name, ' '.join([file] + ['format.' + o for o in options]), samples)


def refuse(file, text, *options):
    mf.refuse(' '.join([file] + ['format.' + o for o in options]), text)


# ---- files by hand ----

def put_sparse(h, where, m, index='i4', indptr='i4', old=False, kind='csr',
               chunks=None, data=None, **kw):
    g = h.create_group(where)
    if old:
        g.attrs['h5sparse_format'] = kind
        g.attrs['h5sparse_shape'] = np.array(m.shape)
    else:
        g.attrs['encoding-type'] = kind + '_matrix'
        g.attrs['encoding-version'] = '0.1.0'
        g.attrs['shape'] = np.array(m.shape)
    for name, a in (('data', m.data.astype(data or m.dtype)),
                    ('indices', m.indices.astype(index)),
                    ('indptr', m.indptr.astype(indptr))):
        c = (min(chunks[name][0], max(len(a), 1)),) if chunks else None
        g.create_dataset(name, data=a, chunks=c, **(kw if c else {}))
    return g


def put_frame(h, where, length, **columns):
    f = h.create_group(where)
    f.attrs['_index'] = '_index'
    f.attrs['column-order'] = np.array(list(columns), dtype=STR)
    f.attrs['encoding-type'] = 'dataframe'
    f.attrs['encoding-version'] = '0.2.0'
    f.create_dataset('_index', dtype=STR, data=[
        '%s%d' % (where[0], i) for i in range(length)])
    for name, v in columns.items():
        f.create_dataset(name, data=v)
    return f


def by_hand(name, m, libver='earliest', **kw):
    h = h5py.File(path(name), 'w', libver=libver)
    put_sparse(h, 'X', sp.csr_matrix(m), **kw)
    put_frame(h, 'obs', m.shape[0])
    put_frame(h, 'var', m.shape[1])
    return h


# ---- files from anndata ----

def make_obs(n):
    return pd.DataFrame({
        'tissue': pd.Categorical(rng.choice(['lung', 'liver', 'skin'], n)),
        'gap': pd.Categorical(rng.choice(['a', 'b', None], n)),
        'plate': pd.Categorical(rng.integers(0, 4, n) * 10),
        'rank': pd.Categorical(['lo', 'hi'] * (n // 2) + ['lo'] * (n % 2),
                               ['lo', 'hi'], ordered=True),
        'i8': rng.integers(-9, 9, n).astype('i1'),
        'u16': rng.integers(0, 60000, n).astype('u2'),
        'i64': rng.integers(-2**40, 2**40, n),
        'f32': rng.random(n, dtype='f4'),
        'f64': rng.random(n),
        'flag': rng.random(n) < 0.5,
        'text': pd.Series(rng.choice(['Zo\u00eb', 'b', 'aa', ''], n),
                          dtype=object).values,
    }, index=['cell%d' % i for i in range(n)])


def coded(column):
    return column.cat.codes.values.astype('i4')


def text_codes(v):
    v = [x.encode() for x in v]
    at = {x: i for i, x in enumerate(sorted(set(v)))}
    return np.array([at[x] for x in v], 'i4')


def make_anndata():
    m = counts()
    obs = make_obs(N)
    var = pd.DataFrame({'highly_variable': rng.random(G) < 0.4,
                        'length': rng.integers(1, 9, G)},
                       index=['gene%d' % i for i in range(G)])
    hv = var.highly_variable.values
    raw = counts(N, G + 4)
    a = anndata.AnnData(sp.csr_matrix(m), obs, var, dtype=np.float32)
    a.raw = anndata.AnnData(sp.csr_matrix(raw), obs[[]], dtype=np.float32)
    a.layers['dense'] = m * 2
    a.layers['f8'] = (m * 0.5).astype('f8')
    a.layers['sparse'] = sp.csr_matrix((m * 3).astype('f8'))
    a.layers['csc'] = sp.csc_matrix(m)
    a.layers['i8'] = m
    a.obsm['X_pca'] = rng.random((N, 5))
    a.obsm['X_umap'] = rng.random((N, 2), dtype='f4')
    a.obsm['bins'] = rng.integers(0, 99, (N, 3))
    a.obsm['atac'] = sp.csr_matrix(counts(N, 6))
    a.obsm['table'] = pd.DataFrame({'a': np.arange(N)}, index=obs.index)
    # anndata turns string columns into categories unless prevented
    for comp in (None, 'gzip', 'lzf'):
        f = 'anndata-%s.h5ad' % comp
        b = a.copy()
        b.write_h5ad(path(f), compression=comp)
        case('ad-%s' % comp, f, rows(m))
        case('ad-%s-csr' % comp, f, lists(m), 'output=csr')
        case('ad-%s-raw' % comp, f, rows(raw), 'matrix=raw')
        case('ad-%s-dense' % comp, f, rows(m * 2), 'matrix=layers/dense')
        case('ad-%s-f8' % comp, f, rows(m * .5), 'matrix=layers/f8')
        case('ad-%s-f8f8' % comp, f, rows(m * .5, 'f8'),
             'matrix=layers/f8', 'dtype=float64')
        case('ad-%s-layer' % comp, f, rows(m * 3), 'matrix=layers/sparse')
        case('ad-%s-layer-csr' % comp, f, lists(m * 3),
             'matrix=layers/sparse', 'output=csr')
        for dtype in 'float16', 'uint16', 'float64', 'int32', 'int8', 'uint32':
            case('ad-%s-%s' % (comp, dtype), f, rows(m, dtype),
                 'dtype=' + dtype)
            case('ad-%s-csr-%s' % (comp, dtype), f, lists(m, dtype),
                 'dtype=' + dtype, 'output=csr')
        cols = {'tissue': coded(obs.tissue), 'gap': coded(obs.gap),
                'plate': coded(obs.plate), 'i8': obs.i8.values,
                'u16': obs.u16.values, 'i64': obs.i64.values,
                'f32': obs.f32.values, 'f64': obs.f64.values,
                'flag': obs.flag.values, 'text': text_codes(obs.text)}
        ask = 'obs=' + ','.join(cols)
        case('ad-%s-obs' % comp, f, rows(m, **cols), ask)
        case('ad-%s-obs-csr' % comp, f, lists(m, **cols), ask, 'output=csr')
        case('ad-%s-first' % comp, f, rows(m[:, :7]), 'genes=first:7')
        case('ad-%s-first-dense' % comp, f, rows(m[:, :7] * 2),
             'genes=first:7', 'matrix=layers/dense')
        case('ad-%s-hv' % comp, f, rows(m[:, hv]),
             'genes=var:highly_variable')
        case('ad-%s-hv-dense' % comp, f, rows(m[:, hv] * 2),
             'genes=var:highly_variable', 'matrix=layers/dense')
        chosen = [11, 2, 20, 3]
        mf.put('genes.txt', ''.join(' gene%d\t\r\n' % i
                                    for i in chosen).encode() + b'\n')
        case('ad-%s-list' % comp, f, rows(m[:, chosen]),
             'genes=@' + path('genes.txt'))
        case('ad-%s-list-u2' % comp, f, rows(m[:, chosen], 'u2'),
             'genes=@' + path('genes.txt'), 'dtype=uint16')
        make_lists(comp, f, m, chosen, hv, obs)
        make_filters(comp, f, m, obs, cols, ask)
        make_several(comp, f, a, m, raw)
        make_changes(comp, f, m, chosen)
    f = 'anndata-None.h5ad'
    refuse(f, "a.layers['csc'].tocsr()", 'matrix=layers/csc')
    refuse(f, 'no such matrix', 'matrix=layers/none')
    refuse(f, 'no such matrix', 'matrix=X,obsm/none')
    refuse(f, "encoding-type 'dataframe'", 'matrix=X,obsm/table')
    refuse(f, "become the field 'sparse'",
           'matrix=X,layers/sparse,layers/sparse')
    refuse(f, "become the field 'i8'", 'matrix=X,layers/i8', 'obs=i8')
    refuse(f, 'is not a matrix name', 'matrix=X,')
    refuse(f, "no column 'none'; `penstock inspect` lists", 'obs=none')
    refuse(f, "no column 'tisue'; did you mean 'tissue'?", 'obs=tisue')
    refuse(f, "no column 'Plate'; did you mean 'plate'?", 'filter=Plate:1')
    refuse(f, "no column 'lenght'; did you mean 'length'?",
           'genes=var:lenght')
    refuse(f, 'is listed twice', 'obs=i8,i8')
    refuse(f, 'is not boolean', 'genes=var:length')
    refuse(f, 'does not select genes', 'genes=some')
    refuse(f, 'asks for the first 24', 'genes=first:24')
    refuse(f, 'cannot represent', 'dtype=int32', 'log1p=true')
    refuse(f, 'not a valid dtype', 'dtype=complex64')
    refuse(f, 'does not fit', 'matrix=layers/f8', 'dtype=uint16')
    refuse(f, 'is not a filter', 'filter=tissue')
    refuse(f, 'is not a filter', 'filter=tissue:lung&')
    mf.put('missing.txt', b'gene1\ngeneX\n')
    refuse(f, "'geneX' of the list", 'genes=@' + path('missing.txt'))
    mf.put('double.txt', b'gene1\ngene1\n')
    refuse(f, 'is listed twice', 'genes=@' + path('double.txt'))
    mf.put('empty.txt', b'\n')
    refuse(f, 'selects no gene', 'genes=@' + path('empty.txt'))
    refuse(f, 'cannot read the list of genes', 'genes=@/nowhere/at/all')


def make_lists(comp, f, m, chosen, hv, obs):
    """Lists whose length is not known in advance."""
    listed = 'genes=@' + path('genes.txt')
    one, i8 = 'ad-%s-lists-' % comp, obs.i8.values
    case(one + 'list', f, some(m, chosen, i8=i8), listed, 'output=csr',
         'obs=i8')
    case(one + 'list-u2', f, some(m, chosen, 'u2'), listed, 'output=csr',
         'dtype=uint16')
    case(one + 'first', f, some(m, range(7)), 'genes=first:7', 'output=csr')
    case(one + 'hv', f, some(m, np.flatnonzero(hv)), 'output=csr',
         'genes=var:highly_variable')
    case(one + 'log', f, some(np.log1p(m.astype('f8')), chosen), listed,
         'output=csr', 'log1p=true')
    case(one + 'dense', f, lists(m * 2, i8=i8), 'matrix=layers/dense',
         'output=csr', 'obs=i8')
    case(one + 'dense-list', f, [
        {'X_data': x['X_data'][o], 'X_indices': x['X_indices'][o]}
        for x in some(m * 2, chosen)
        for o in [np.argsort([chosen[k] for k in x['X_indices']])]], listed,
        'matrix=layers/dense', 'output=csr')
    case(one + 'dense-first', f, some(m * 2, range(4)), 'genes=first:4',
         'matrix=layers/dense', 'output=csr')
    case(one + 'several', f, [
        {**x, 'sparse_data': y['X_data'], 'sparse_indices': y['X_indices']}
        for x, y in zip(some(m * 2, range(4)), some(m * 3, range(4)))],
        'genes=first:4', 'matrix=layers/dense,layers/sparse', 'output=csr')
    keep = obs.tissue == 'lung'
    case(one + 'filter', f, some(m[keep], chosen), listed, 'output=csr',
         'filter=tissue:lung')


def make_several(comp, f, a, m, raw):
    """Several matrices; only those over genes are normalized."""
    pca, umap = a.obsm['X_pca'], a.obsm['X_umap']
    bins, atac = a.obsm['bins'], a.obsm['atac'].toarray()
    hv = a.var.highly_variable.values
    n = a.obs.i8.values
    one = 'ad-%s-several-' % comp
    case(one + 'all', f, rows(m, X_pca=pca, X_umap=umap, bins=bins.astype(
        'f4'), atac=atac, dense=m * 2, raw=raw, i8=n),
        'matrix=X,obsm/X_pca,obsm/X_umap,obsm/bins,obsm/atac,layers/dense,raw',
        'obs=i8')
    case(one + 'f8', f, rows(m, 'f8', X_umap=umap.astype('f8')),
         'matrix=X,obsm/X_umap', 'dtype=float64')
    case(one + 'u2', f, rows(m, 'u2', X_pca=pca), 'matrix=X,obsm/X_pca',
         'dtype=uint16')
    case(one + 'csr', f, [
        {**x, 'X_pca': pca[i], 'sparse_data': y['X_data'], 'sparse_indices':
         y['X_indices'], 'dense': 2 * m[i], 'i8': n[i]} for i, (x, y) in
        enumerate(zip(lists(m), lists(m * 3)))],
        'matrix=X,obsm/X_pca,layers/sparse,layers/dense', 'output=csr',
        'obs=i8')
    case(one + 'genes', f, rows(np.log1p(m[:, hv].astype('f8')), X_pca=pca,
                                dense=np.log1p(
                                    m[:, hv].astype('f8') * 2).astype('f4')),
         'matrix=X,obsm/X_pca,layers/dense', 'genes=var:highly_variable',
         'log1p=true')
    case(one + 'first', f, rows(raw[:, :3], X_pca=pca,
                                f8=(m[:, :3] * .5).astype('f4')),
         'matrix=raw,obsm/X_pca,layers/f8', 'genes=first:3')
    case(one + 'obsm', f, rows(pca, 'f8'), 'matrix=obsm/X_pca')
    case(one + 'obsm-f4', f, rows(pca), 'matrix=obsm/X_pca',
         'dtype=float32')
    case(one + 'flat', f, [{'X': pca[i], 'X_umap': umap[i]}
                           for i in range(N)],
         'matrix=obsm/X_pca,obsm/X_umap')


def make_filters(comp, f, m, obs, cols, ask):
    def one(name, keep, text):
        keep = np.asarray(keep)
        case('ad-%s-%s' % (comp, name), f,
             rows(m[keep], **{k: v[keep] for k, v in cols.items()}), ask,
             'filter=' + text)
        case('ad-%s-%s-csr' % (comp, name), f, lists(m[keep]),
             'filter=' + text, 'output=csr')
    one('lung', obs.tissue == 'lung', 'tissue:lung')
    one('either', obs.tissue.isin(['lung', 'skin']), 'tissue:lung|skin')
    one('and', (obs.tissue == 'lung') & obs.flag, 'tissue:lung&flag:true')
    one('plate', obs.plate == 20, 'plate:20')
    one('num', obs.i8.isin([1, -2, 3]), 'i8:1|-2|3')
    one('text', obs.text == 'aa', 'text:aa|zz')
    case('ad-%s-lung-dense' % comp, f, rows(2 * m[obs.tissue == 'lung']),
         'filter=tissue:lung', 'matrix=layers/dense')


def make_changes(comp, f, m, chosen):
    d = m.astype('f8')
    total = d.sum(1, keepdims=True)
    scaled = d * np.divide(1e4, total, where=total > 0,
                           out=np.zeros_like(total))
    case('ad-%s-norm' % comp, f, rows(scaled), 'normalize=1e4')
    case('ad-%s-log' % comp, f, rows(np.log1p(d)), 'log1p=true')
    both = 'normalize=1e4', 'log1p=true'
    case('ad-%s-both' % comp, f, rows(np.log1p(scaled)), *both)
    case('ad-%s-both-list' % comp, f, rows(np.log1p(scaled[:, chosen])),
         'genes=@' + path('genes.txt'), *both)
    case('ad-%s-both-first' % comp, f, rows(np.log1p(scaled[:, :5])),
         'genes=first:5', 'matrix=layers/dense', *both)
    s = sp.csr_matrix(m)
    s.data = np.log1p(np.repeat(1e4 / np.maximum(total[:, 0], 1),
                                np.diff(s.indptr)) * s.data.astype('f8'))
    case('ad-%s-both-csr' % comp, f, lists(s), 'output=csr', *both)


# ---- files from h5py ----

def make_layouts():
    m = counts()
    for libver in 'earliest', 'latest':
        for i, kw in enumerate((
                {}, {'compression': 'gzip'}, {'compression': 'lzf'},
                {'compression': 'gzip', 'shuffle': True},
                {'fletcher32': True}, {'shuffle': True, 'compression': 'lzf',
                                       'fletcher32': True})):
            for j, chunks in enumerate((
                    {'data': 16, 'indices': 10, 'indptr': 8},
                    {'data': 1000, 'indices': 3, 'indptr': 100}, None)):
                name = 'layout-%s-%d-%d' % (libver, i, j)
                c = {k: (v,) for k, v in chunks.items()} if chunks else None
                more = {'maxshape': (None,)} if j == 0 else {}
                by_hand(name + '.h5ad', m, libver, chunks=c, **kw,
                        **more).close()
                case(name, name + '.h5ad', rows(m))
                case(name + '-csr', name + '.h5ad', lists(m), 'output=csr')
                if not chunks:
                    break
            for j, chunks in enumerate(((5, 7), (1, 23), (40, 30), (8, 23))):
                name = 'dense-%s-%d-%d' % (libver, i, j)
                with h5py.File(path(name + '.h5ad'), 'w', libver=libver) as h:
                    h.create_dataset('X', data=m, chunks=chunks,
                                     maxshape=(None, None), **kw)
                    put_frame(h, 'obs', N)
                    put_frame(h, 'var', G)
                case(name, name + '.h5ad', rows(m))
                case(name + '-first', name + '.h5ad', rows(m[:, :9]),
                     'genes=first:9')
                case(name + '-norm', name + '.h5ad', rows(
                    m[:, :2] * np.divide(10, m.sum(1, keepdims=True,
                                                   dtype='f8'),
                                         where=m.sum(1, keepdims=True) > 0,
                                         out=np.zeros((N, 1)))),
                     'genes=first:2', 'normalize=10')


def make_types():
    m = counts()
    for index in 'i1 u1 i2 u2 i4 u4 i8 u8 >i4 >i8 >u2'.split():
        name = 'index-' + index.replace('>', 'big-')
        by_hand(name + '.h5ad', m, index=index,
                indptr=index if index[-1] in '48' else 'i8').close()
        case(name, name + '.h5ad', rows(m))
        case(name + '-csr', name + '.h5ad', lists(m), 'output=csr')
    for data in ('? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 >f4 >f8 >i2').split():
        name = 'data-' + data.replace('>', 'big-').replace('?', 'bool')
        by_hand(name + '.h5ad', m != 0 if data == '?' else m,
                data=data).close()
        w = (m != 0).astype('f4') if data == '?' else m
        case(name, name + '.h5ad', rows(w))
        case(name + '-i4', name + '.h5ad', rows(w, 'i4'), 'dtype=int32')
        case(name + '-csr', name + '.h5ad', lists(w, 'f8'), 'output=csr',
             'dtype=float64')
        name = 'dense-' + name
        with h5py.File(path(name + '.h5ad'), 'w') as h:
            h.create_dataset('X', data=w.astype(data))
            put_frame(h, 'obs', N)
            put_frame(h, 'var', G)
        case(name, name + '.h5ad', rows(w))
        case(name + '-f8', name + '.h5ad', rows(w, 'f8'), 'dtype=float64')


def make_odd():
    # unsorted, and several values for one gene
    m = sp.csr_matrix(counts())
    m.indices, m.data = m.indices.copy(), m.data.copy()
    for i in range(N):
        at = slice(m.indptr[i], m.indptr[i + 1])
        p = rng.permutation(m.indptr[i + 1] - m.indptr[i])
        m.indices[at], m.data[at] = m.indices[at][p], m.data[at][p]
    m.has_sorted_indices = False
    m.indices[m.indptr[1] - 1] = m.indices[m.indptr[0]]
    with h5py.File(path('odd.h5ad'), 'w') as h:
        put_sparse(h, 'X', m)
        put_frame(h, 'obs', N)
        put_frame(h, 'var', G)
    full = np.zeros((N, G), 'f4')
    for i in range(N):
        for k in range(m.indptr[i], m.indptr[i + 1]):
            full[i, m.indices[k]] += m.data[k]
    case('odd', 'odd.h5ad', rows(full))
    case('odd-i4', 'odd.h5ad', rows(full, 'i4'), 'dtype=int32')
    case('odd-csr', 'odd.h5ad', lists(m), 'output=csr')
    # rows too large to be built in place
    wide = counts(9, 9001)
    by_hand('wide.h5ad', wide, compression='gzip').close()
    case('wide', 'wide.h5ad', rows(wide))
    case('wide-u2', 'wide.h5ad', rows(wide, 'u2'), 'dtype=uint16')
    case('wide-log', 'wide.h5ad', rows(np.log1p(wide.astype('f8'))),
         'log1p=true')
    case('wide-first', 'wide.h5ad', rows(wide[:, :4097]), 'genes=first:4097')
    case('wide-csr', 'wide.h5ad', lists(wide), 'output=csr')
    # no values at all
    by_hand('zeros.h5ad', np.zeros((4, 3), 'f4')).close()
    case('zeros', 'zeros.h5ad', rows(np.zeros((4, 3))))
    case('zeros-csr', 'zeros.h5ad', lists(np.zeros((4, 3))), 'output=csr')
    # chunks of a dense matrix that were never written
    with h5py.File(path('holes.h5ad'), 'w') as h:
        d = h.create_dataset('X', (N, G), 'f4', chunks=(6, 5), fillvalue=2.5,
                             compression='gzip')
        d[6:12, 5:10] = 1
        put_frame(h, 'obs', N)
        put_frame(h, 'var', G)
        case('holes', 'holes.h5ad', rows(d[()]))
        case('holes-f8', 'holes.h5ad', rows(d[()], 'f8'), 'dtype=float64')
    # chunks stored out of order
    with h5py.File(path('mixed.h5ad'), 'w') as h:
        g = put_sparse(h, 'X', sp.csr_matrix(full))
        a = g['data'][()]
        del g['data']
        d = g.create_dataset('data', a.shape, 'f4', chunks=(20,))
        for i in reversed(range(0, len(a), 20)):
            d[i:i + 20] = a[i:i + 20]
        put_frame(h, 'obs', N)
        put_frame(h, 'var', G)
    case('mixed', 'mixed.h5ad', rows(full))
    case('mixed-csr', 'mixed.h5ad', lists(full), 'output=csr')


def nullable(h, where, values, mask):
    g = h.create_group(where)
    g.attrs['encoding-type'] = 'nullable-x'
    g.create_dataset('values', data=values)
    g.create_dataset('mask', data=mask)


def make_obs_kinds():
    m = counts(8, 3)
    h = by_hand('kinds.h5ad', m)
    mask = np.array([0, 1, 0, 0, 1, 0, 0, 0], bool)
    ints, bools = np.arange(8) - 3, np.arange(8) % 3 == 0
    nullable(h, 'obs/ints', ints, mask)
    nullable(h, 'obs/bools', bools, mask)
    words = ['b', 'x', 'a', 'b', 'x', 'c', 'a', 'a']
    nullable(h, 'obs/words', np.array(words, dtype=STR), mask)
    h['obs/fixed'] = np.array(words, 'S4')
    h['obs/plain'] = np.array(words, dtype=STR)
    h['obs/big'] = ints.astype('>i4')
    for width in 'i1', 'i2', 'i4', 'u1':
        g = h.create_group('obs/cat' + width)
        g.attrs['encoding-type'] = 'categorical'
        g['codes'] = np.array([0, 1, 2, 0, 1, 2, 0, 0], width)
        g['categories'] = np.array(['p', 'q', 'r'], dtype=STR)
    g = h.create_group('obs/nested')
    g['codes'] = np.array([-1, 1, 0, 0, 1, -1, 0, 0], 'i1')
    nullable(h, 'obs/nested/categories', np.array(['p', 'q'], dtype=STR),
             np.zeros(2, bool))
    h.close()
    codes = np.array([0, 1, 2, 0, 1, 2, 0, 0], 'i4')
    cols = {
        'ints': np.where(mask, np.nan, ints),
        'bools': np.where(mask, -1, bools).astype('i1'),
        'words': np.array([1, -1, 0, 1, -1, 2, 0, 0], 'i4'),
        'fixed': np.array([1, 3, 0, 1, 3, 2, 0, 0], 'i4'),
        'plain': np.array([1, 3, 0, 1, 3, 2, 0, 0], 'i4'),
        'big': ints.astype('i4'), 'cati1': codes, 'cati2': codes,
        'cati4': codes, 'catu1': codes,
        'nested': np.array([-1, 1, 0, 0, 1, -1, 0, 0], 'i4'),
    }
    case('kinds', 'kinds.h5ad', rows(m, **cols), 'obs=' + ','.join(cols))
    case('kinds-filter', 'kinds.h5ad', rows(m[[0, 3]]),
         'filter=words:b&cati2:p')
    # anndata 0.7: an attribute refers to the categories
    h = by_hand('old7.h5ad', m)
    h['obs/__categories/kind'] = np.array(['u', 'v'], dtype=STR)
    h['obs/kind'] = np.array([0, 1, -1, 1, 0, 0, 1, 1], 'i1')
    h['obs/kind'].attrs['categories'] = h['obs/__categories/kind'].ref
    h['obs/n'] = np.arange(8)
    h.close()
    kind = np.array([0, 1, -1, 1, 0, 0, 1, 1], 'i4')
    case('old7', 'old7.h5ad', rows(m, kind=kind, n=np.arange(8)),
         'obs=kind,n')
    case('old7-v', 'old7.h5ad', rows(m[kind == 1]), 'filter=kind:v')
    # before: compounds, and other names of attributes
    for word in 'S5', h5py.string_dtype():
        name = 'old6-%s' % ('fixed' if word == 'S5' else 'vlen')
        with h5py.File(path(name + '.h5ad'), 'w') as h:
            put_sparse(h, 'X', sp.csr_matrix(m), old=True)
            put_sparse(h, 'raw.X', sp.csr_matrix(m * 2), old=True)
            t = np.dtype([('index', word), ('kind', 'i1'), ('n', '>i4'),
                          ('word', word)])
            o = np.empty(8, t)
            o['index'] = ['c%d' % i for i in range(8)]
            o['kind'], o['n'] = kind, ints
            o['word'] = [w.encode() for w in words] if word == 'S5' else words
            h['obs'] = o
            v = np.empty(3, [('index', word), ('x', 'f4')])
            v['index'] = ['g%d' % i for i in range(3)]
            h['var'] = h['raw.var'] = v
            h['uns/kind_categories'] = np.array(['u', 'v'], dtype=STR)
        case(name, name + '.h5ad',
             rows(m, kind=kind, n=ints.astype('i4'), word=cols['fixed']),
             'obs=kind,n,word')
        case(name + '-raw', name + '.h5ad', rows(m * 2), 'matrix=raw')
        mf.put('old.txt', b'g2\ng0\n')
        case(name + '-genes', name + '.h5ad', rows(m[:, [2, 0]]),
             'genes=@' + path('old.txt'))
        case(name + '-csr', name + '.h5ad', lists(m), 'output=csr')
    make_old_obsm(m)


def make_old_obsm(m):
    """All of obsm in one compound data set."""
    n = len(m)
    t = [('X_pca', '<f4', (6,)), ('X_umap', '>f8', (2,)), ('bins', 'u1', (8,)),
         ('one', '<f8'), ('word', 'S8')]
    o = np.zeros(n, t)
    o['X_pca'], o['X_umap'] = rng.random((n, 6)), rng.random((n, 2))
    o['bins'], o['one'] = rng.integers(0, 9, (n, 8)), rng.random(n)
    for name, kw in (('flat', {}), ('chunks', {'chunks': (3,)}),
                     ('gzip', {'chunks': (3,), 'compression': 'gzip',
                               'shuffle': True})):
        f = 'old5-%s.h5ad' % name
        h = by_hand(f, m)
        h.create_dataset('obsm', data=o, **kw)
        h.close()
        case('old5-pca-' + name, f, rows(o['X_pca']), 'matrix=obsm/X_pca')
        case('old5-all-' + name, f, rows(
            m, X_umap=o['X_umap'].astype('f8'), bins=o['bins'].astype('f4'),
            X_pca=o['X_pca'], one=o['one'][:, None]),
            'matrix=X,obsm/X_umap,obsm/bins,obsm/X_pca,obsm/one')
        case('old5-csr-' + name, f, lists(m, X_pca=o['X_pca']),
             'matrix=X,obsm/X_pca', 'output=csr')
    refuse(f, 'not a run of numbers', 'matrix=obsm/word')
    refuse(f, 'contains X, obsm/X_pca, obsm/X_umap, obsm/bins',
           'matrix=obsm/none')
    h = by_hand('old5-odd.h5ad', m)
    h['obsm'] = np.zeros(n, [('a', 'f4', (3,)), ('b', 'f8', (2,))])
    h.close()
    refuse('old5-odd.h5ad', 'not a run of numbers', 'matrix=obsm/b')
    with h5py.File(path('no-x.h5ad'), 'w') as h:
        put_frame(h, 'obs', n)
        put_frame(h, 'var', m.shape[1])
        refuse('no-x.h5ad', 'nor any other')
    with h5py.File(path('no-x2.h5ad'), 'w') as h:
        put_frame(h, 'obs', n)
        put_frame(h, 'var', m.shape[1])
        put_sparse(h, 'layers/a', sp.csr_matrix(m))
        h['layers/b'] = m
        h['layers/c'] = np.arange(n)
        h['obsm/d'] = m
        put_sparse(h, 'raw/X', sp.csr_matrix(m))
    refuse('no-x2.h5ad', 'contains layers/a, layers/b, obsm/d, raw: choose '
           'one, as in format.matrix=layers/a')


def make_many():
    a, b = counts(5, 4), counts(7, 4)
    os.makedirs(path('many'))
    for i, m in enumerate((a, b)):
        h = by_hand('many/%d.h5ad' % i, m)
        h['obs/n'] = np.arange(len(m))
        g = h.create_group('obs/kind')
        g['codes'] = np.arange(len(m)) % 2
        g['categories'] = np.array(['u', 'v' if i else 'w'], dtype=STR)
        h.close()
    n = np.concatenate([np.arange(5), np.arange(7)])
    both = np.concatenate([a, b])
    case('many', 'many', rows(both, n=n), 'obs=n')
    case('many-csr', 'many', lists(both, n=n), 'obs=n', 'output=csr')
    # [u, w] and [u, v] become [u, v, w]
    kind = np.array([0, 2, 0, 2, 0, 0, 1, 0, 1, 0, 1, 0], 'i4')
    case('many-kind', 'many', rows(both, n=n, kind=kind), 'obs=n,kind')
    case('many-v', 'many', rows(b[1::2]), 'filter=kind:v')
    os.makedirs(path('others'))
    by_hand('others/0.h5ad', a).close()
    by_hand('others/1.h5ad', counts(5, 6)).close()
    refuse('others', 'genes=@FILE')
    os.makedirs(path('types'))
    for i, t in enumerate(('i4', 'f4')):
        h = by_hand('types/%d.h5ad' % i, a)
        h['obs/n'] = np.arange(5).astype(t)
        h.close()
    refuse('types', 'in earlier files', 'obs=n')
    os.makedirs(path('order'))
    by_hand('order/0.h5ad', a).close()
    h = by_hand('order/1.h5ad', b[:, ::-1])
    h['var/_index'][:] = ['v3', 'v2', 'v1', 'v0']
    h.close()
    refuse('order', 'their order differ')
    mf.put('order.txt', b'v0\nv2\n')
    case('order', 'order', rows(both[:, [0, 2]]),
         'genes=@' + path('order.txt'))


def make_joins():
    """Files with different genes, against anndata.concat."""
    os.makedirs(path('joins'))
    sets = [list('abcdef'), list('fedxb'), list('bzdfa')]
    all_, both = list('abcdefxz'), list('bdf')
    files = []
    for i, genes in enumerate(sets):
        m = counts(6 + i, len(genes))
        x = m if i == 1 else sp.csr_matrix(m)
        obs = pd.DataFrame({
            'kind': pd.Categorical(rng.choice(['u', 'v', 'w%d' % i], 6 + i)),
            'n': np.arange(6 + i), 'other%d' % i: np.arange(6 + i)},
            index=['f%dc%d' % (i, k) for k in range(6 + i)])
        a = anndata.AnnData(x, obs, pd.DataFrame(index=genes),
                            dtype=np.float32)
        a.layers['l'] = m * 2
        a.obsm['p'] = rng.random((6 + i, 2))
        a.write_h5ad(path('joins/%d.h5ad' % i), compression='gzip')
        files.append(a)
    source = np.repeat(np.arange(3), [6, 7, 8]).astype('i4')
    kind = np.concatenate([f.obs.kind.astype(str) for f in files])
    names = sorted(set(kind))
    kind = np.array([names.index(k) for k in kind], 'i4')
    n = np.concatenate([f.obs.n for f in files])
    p = np.concatenate([f.obsm['p'] for f in files])
    index = text_codes(np.concatenate([f.obs.index for f in files]))
    for f in files:
        f.X = sp.csr_matrix(f.X)
    mf.put('join.txt', b'f\nb\n')
    for join, order in ('inner', both), ('outer', all_):
        c = anndata.concat(files, join=join, fill_value=0)
        assert sorted(c.var_names) == sorted(order)
        x = np.asarray(c[:, order].X.todense())
        layer = np.asarray(c[:, order].layers['l'])
        j = 'join=' + join
        case('join-' + join, 'joins', rows(x, l=layer, p=p, kind=kind,
                                           source=source), j,
             'matrix=X,layers/l,obsm/p', 'obs=kind', 'source=true')
        case('join-%s-all' % join, 'joins', rows(x, kind=kind, n=n), j,
             'obs=*')
        case('join-%s-index' % join, 'joins', rows(x, _index=index), j,
             'obs=_index')
        case('join-%s-first' % join, 'joins', rows(x[:, :2]), j,
             'genes=first:2')
        at = [order.index('f'), order.index('b')]
        case('join-%s-list' % join, 'joins', rows(x[:, at]), j,
             'genes=@' + path('join.txt'))
        at = files[0].var_names.tolist()
        by_file = []
        for f in files:
            have = [order.index(g) if g in order else -1
                    for g in f.var_names]
            pick = {g: k for k, g in enumerate(have) if g >= 0}
            y = some(f.X, [pick.get(g, -2) for g in range(len(order))])
            by_file += y
        case('join-%s-csr' % join, 'joins', by_file, j, 'output=csr')
    case('join-one', 'joins/0.h5ad', rows(files[0].X.toarray(), source=np
         .zeros(6, 'i4')), 'join=outer', 'source=true')
    refuse('joins', 'use format.join=inner')
    refuse('joins', 'var:COLUMN', 'genes=var:x', 'join=inner')
    refuse('joins', 'not in all files', 'join=inner',
           'genes=@' + path('some.txt'))
    mf.put('some.txt', b'a\n')
    refuse('joins', 'not in any file', 'join=outer',
           'genes=@' + path('genes.txt'))
    refuse('joins', 'asks for the first 4', 'join=inner', 'genes=first:4')
    os.makedirs(path('twice'))
    for i in range(2):
        h = by_hand('twice/%d.h5ad' % i, counts(5, 4))
        h['var/_index'][:] = ['a', 'b', 'c', 'c' if i else 'd']
        h.close()
    refuse('twice', "gene 'c' appears twice", 'join=inner')
    os.makedirs(path('apart'))
    for i in range(2):
        h = by_hand('apart/%d.h5ad' % i, counts(5, 2))
        h['var/_index'][:] = ['%s%d' % (x, i) for x in 'ab']
        h.close()
    refuse('apart', 'use format.join=outer', 'join=inner')
    # next to files without cells and without values
    os.makedirs(path('few'))
    parts = [counts(5, 3), np.zeros((0, 3), 'f4'), np.zeros((4, 3), 'f4')]
    for i, m in enumerate(parts):
        by_hand('few/%d.h5ad' % i, m).close()
    m = np.concatenate(parts)
    src = np.array([0] * 5 + [2] * 4, 'i4')
    case('few', 'few', rows(m, source=src), 'source=true')
    case('few-csr', 'few', lists(m, source=src), 'source=true', 'output=csr')
    case('few-join', 'few', rows(m), 'join=outer')


# ---- invalid files ----

def make_wrong():
    m = counts(6, 5)
    m[5, 1:3] = 1, 2
    m = sp.csr_matrix(m)

    def wrong(name, text, change, *options):
        with h5py.File(path(name + '.h5ad'), 'w') as h:
            put_sparse(h, 'X', m)
            put_frame(h, 'obs', 6, n=np.arange(6))
            put_frame(h, 'var', 5)
            change(h)
        refuse(name + '.h5ad', text, *options)

    def replace(h, name, v):
        if name in h:
            del h[name]
        h[name] = v

    def attr(h, name, v):
        h['X'].attrs[name] = v

    past = m.indices.copy()
    past[2] = 5
    wrong('gene-past', 'refers to gene 5', lambda h: replace(
        h, 'X/indices', past))
    wrong('gene-past-csr', 'refers to gene 5', lambda h: replace(
        h, 'X/indices', past), 'output=csr')
    bad = np.searchsorted(m.indptr, 2, 'right') - 1
    mf.want('gene-past-skip', 'gene-past.h5ad format.output=csr '
            'format.genes=first:3 on_error=skip',
            some(np.delete(m.toarray(), bad, 0), range(3)))
    for t in 'i1', 'i2', 'i4', 'i8', '>i4', '>i8':
        minus = past.astype(t)
        minus[2] = -7
        name = 'gene-negative-' + t.replace('>', 'big-')
        for how in [], ['output=csr']:
            wrong(name + '-csr' * len(how), 'refers to gene -7, but there',
                  lambda h: replace(h, 'X/indices', minus), *how)
    for t, at, text in (('i8', 2**40, '2147483647 or above'),
                        ('i8', -2**40, '-2147483648 or below'),
                        ('u8', 2**40, '4294967295 or above'),
                        ('u8', 2**64 - 1, '4294967295 or above'),
                        ('u4', 2**32 - 1, '4294967295'),
                        ('u2', 65535, '65535')):
        wide = past.astype(t)
        wide[2] = at
        wrong('gene-wide-%s-%d' % (t, at), 'refers to gene %s, but' % text,
              lambda h: replace(h, 'X/indices', wide))
    wrong('gene-float', 'not integers', lambda h: replace(
        h, 'X/indices', past.astype('f4')))
    back = m.indptr.copy()
    back[2] = back[1] - 1
    wrong('back', 'row 2 starts', lambda h: replace(h, 'X/indptr', back))
    wrong('start', 'row 0 starts', lambda h: replace(
        h, 'X/indptr', np.maximum(m.indptr, 1)))
    wrong('beyond', 'row 6 starts', lambda h: replace(
        h, 'X/indptr', np.append(m.indptr[:-1], m.nnz + 1)))
    wrong('short', 'indptr ends at', lambda h: replace(
        h, 'X/indptr', np.append(m.indptr[:-1], m.nnz - 1)))
    wrong('starts', '6 rows, but indptr has 6', lambda h: replace(
        h, 'X/indptr', m.indptr[:-1]))
    wrong('starts-float', 'indptr are not integers', lambda h: replace(
        h, 'X/indptr', m.indptr.astype('f8')))
    wrong('data', 'but indices has', lambda h: replace(
        h, 'X/data', m.data[:-1]))
    wrong('data-axes', 'axes', lambda h: replace(
        h, 'X/data', m.data[None]))
    wrong('data-text', 'a matrix needs numbers', lambda h: replace(
        h, 'X/data', np.array(['a'] * m.nnz, 'S1')))
    wrong('shape', 'names 5 genes', lambda h: attr(h, 'shape', [6, 6]))
    wrong('shape-rows', '7 rows, but indptr has 7', lambda h: attr(
        h, 'shape', [7, 5]))
    wrong('shape-none', 'no shape attribute', lambda h: attr(
        h, 'shape', 'six'))
    wrong('shape-big', 'columns', lambda h: attr(h, 'shape', [6, 2**40]))
    wrong('kind', 'not a matrix', lambda h: attr(h, 'encoding-type', 'dict'))
    wrong('no-data', "no object 'data'", lambda h: h.__delitem__('X/data'))
    wrong('no-X', 'no such matrix', lambda h: h.__delitem__('X'))
    wrong('dense-1d', 'axes', lambda h: replace(h, 'X', m.data))
    wrong('dense-text', 'numbers', lambda h: replace(
        h, 'X', np.array([['a'] * 5] * 6, 'S1')))
    wrong('rows', 'has 5 rows, but X has 6', lambda h: replace(
        h, 'layers/a', np.zeros((5, 5))), 'matrix=X,layers/a')
    wrong('cols', 'over the same genes', lambda h: replace(
        h, 'layers/a', np.zeros((6, 4))), 'matrix=X,layers/a')
    wrong('obs-short', 'has 5 values', lambda h: replace(
        h, 'obs/n', np.arange(5)), 'obs=n')
    wrong('obs-2d', 'axes', lambda h: replace(
        h, 'obs/n', np.zeros((6, 2))), 'obs=n')

    def codes(h):
        del h['obs/n']
        h['obs/n/codes'] = np.arange(6)
        h['obs/n/categories'] = np.array(['a', 'b'], dtype=STR)
    wrong('codes', 'row 2 has code 2', codes, 'obs=n')

    def masked(h):
        del h['obs/n']
        nullable(h, 'obs/n', np.arange(6), np.zeros(5, bool))
    wrong('mask', 'mask', masked, 'obs=n')
    by_hand('no-cells.h5ad', np.zeros((0, 3), 'f4')).close()
    refuse('no-cells.h5ad', '')
    mf.put('not.h5ad', b'no such thing at all' * 50)
    refuse('not.h5ad', 'not an HDF5 file')


def make_tiny():
    m = np.array([[0, 1, 2], [0, 0, 0], [3, 0, 4], [5, 6, 7]], 'f4')
    for i, kw in enumerate(({}, {'compression': 'gzip'})):
        c = {k: (4,) for k in ('data', 'indices', 'indptr')}
        h = by_hand('tiny-%d.h5ad' % i, m, 'latest', chunks=c, **kw)
        g = h.create_group('obs/kind')
        g['codes'] = np.array([0, 1, -1, 0], 'i1')
        g['categories'] = np.array(['u', 'v'], dtype=STR)
        h.close()
    with h5py.File(path('tiny-2.h5ad'), 'w') as h:
        h.create_dataset('X', data=m, chunks=(2, 2), compression='lzf')
        put_frame(h, 'obs', 4, kind=np.arange(4))
        put_frame(h, 'var', 3)
        h['layers/l'] = m
        h['obsm/p'] = m[:, :2]


def make_big():
    """Enough rows for blocks of neighbours, and chunks that rows share."""
    m = sp.random(3000, 200, 0.1, 'csr', 'f4', 11)
    m.data = np.ceil(m.data * 9)
    label = (np.arange(3000) // 100).astype('i4')
    for comp in None, 'gzip':
        f = 'big-%s.h5ad' % comp
        kw = {'compression': comp} if comp else {}
        h = by_hand(f, np.asarray(m.todense()), chunks={
            'data': (700,), 'indices': (1000,), 'indptr': (100,)}, **kw)
        h['obs/label'] = label
        h.close()
        case('big-%s' % comp, f, rows(m, label=label), 'obs=label')
        case('big-%s-csr' % comp, f, lists(m, label=label), 'obs=label',
             'output=csr')
        case('big-%s-some' % comp, f, some(m, range(50), label=label),
             'obs=label', 'output=csr', 'genes=first:50')


def make_archive(folder):
    for name in sorted(os.listdir(folder)):
        if not name.endswith('.h5ad'):
            continue
        at = os.path.join(folder, name)
        a = anndata.read_h5ad(at) if 'X' in h5py.File(at) else None
        os.symlink(os.path.abspath(at), path('archive-' + name))
        name = 'archive-' + name
        if a is None:
            refuse(name, 'nor any other')
            continue
        cols = {}
        for c in a.obs:
            v = a.obs[c]
            cols[c] = coded(v) if hasattr(v, 'cat') else v.values
        ask = 'obs=' + ','.join(cols)
        case(name, name, rows(a.X, **cols), ask)
        case(name + '-csr', name, lists(a.X, **cols), ask, 'output=csr')
        case(name + '-raw', name, rows(a.raw.X), 'matrix=raw')
        for k, v in a.layers.items():
            case('%s-%s' % (name, k), name, rows(v, 'f8'),
                 'matrix=layers/' + k, 'dtype=float64')


def main():
    mf.out = sys.argv[1]
    os.makedirs(mf.out)
    make_anndata()
    make_layouts()
    make_types()
    make_odd()
    make_obs_kinds()
    make_many()
    make_joins()
    make_wrong()
    make_tiny()
    make_big()
    if len(sys.argv) > 2 and os.path.isdir(sys.argv[2]):
        make_archive(sys.argv[2])
    mf.put('manifest', '\n'.join(mf.manifest).encode() + b'\n')
    mf.put('refused', '\n'.join(mf.refused).encode() + b'\n')


if __name__ == '__main__':
    main()
