#!/usr/bin/python3
"""Inputs to start fuzzing from: seeds.py BUILD DIRECTORY

Files that the generators in tests/data make through other programs (NumPy,
h5py, anndata, zarr, Pillow, samtools, torch), and for what only Penstock
writes, files of the command in BUILD. DIRECTORY/HARNESS gets those of a
harness; see tests/fuzz/fuzz.h for what inputs look like.
"""
import gzip
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / 'data'
PYTHON = '/usr/bin/python3'
PICKS = [0, 1, 2, 6, 8, 13, 16, 27]
FILES = 0x80
counts = {}
to = None


def add(harness, data, most=5000):
    if len(data) > most:
        return
    n = counts[harness] = counts.get(harness, 0) + 1
    path = to / harness
    path.mkdir(exist_ok=True)
    (path / ('seed-%d' % n)).write_bytes(data)


def vary(harness, data, most=5000, picks=PICKS):
    for p in picks:
        add(harness, bytes([p]) + data, most)


def parts(files):
    """Several files as one input."""
    return b''.join(struct.pack('<BH', len(n), len(d)) + n.encode() + d
                    for n, d in files if len(n) < 32 and len(d) < 65536)


def files_of(folder, *suffixes, most=5000):
    for p in sorted(folder.rglob('*')):
        if p.is_file() and p.stat().st_size <= most and \
                p.suffix not in ('.want',) and \
                (not suffixes or p.suffix in suffixes):
            yield p


def made(script, *args):
    out = pathlib.Path(tempfile.mkdtemp(dir=to.parent)) / 'made'
    subprocess.run([PYTHON, DATA / script, *args, out], check=True,
                   stdout=subprocess.DEVNULL)
    return out


def arrays(golden):
    for i, p in enumerate(files_of(golden, '.npy', most=700)):
        b = p.read_bytes()
        add('npy_header', b)
        if i % 7 == 0:
            vary('format_npy', b)
            vary('decoder_npy', b, picks=[0])
            vary('format_files', b, picks=[0])
        if i % 40 == 0:
            add('format_arrays', bytes([FILES]) +
                parts([('x.npy', b), ('y.npy', b)]))
    for p in files_of(golden, '.npz'):
        b = p.read_bytes()
        add('zip', b)
        vary('format_npz', b)
    for n in (0, 5, 60, 64):
        vary('format_raw', bytes(range(n)))
        vary('decoder_raw', bytes(range(n)), picks=range(8))
    meta = {'x': {'device': 'cpu', 'shape': [3, 2], 'dtype': 'torch.float32'},
            'shape': [3], 'device': 'cpu', '_type': 'x'}
    x = np.arange(6, dtype='f4').tobytes()
    add('format_arrays', bytes([FILES]) +
        parts([('meta.json', json.dumps(meta).encode()), ('x.memmap', x)]))


def containers():
    """HDF5 and single cells."""
    for p in files_of(made('make_hdf5.py'), '.h5', '.h5ad', most=20000):
        b = p.read_bytes()
        vary('format_hdf5', b, 20001, PICKS[:4])
    for p in files_of(made('make_h5ad.py'), '.h5ad', most=16000):
        b = p.read_bytes()
        vary('format_h5ad', b, 16001, [0, 9, 64])
        vary('format_anndata', b, 13001, [0])
    zarr = made('make_zarr.py')
    for p in files_of(zarr, '.zip', most=6000):
        vary('format_zarr', p.read_bytes(), 6001, [0, 9, 32, 65])
        add('zip', p.read_bytes())
    for p in sorted(zarr.iterdir()):
        if not p.is_dir() or p.suffix != '.zarr':
            continue
        b = parts((os.path.relpath(f, p), f.read_bytes())
                  for f in sorted(p.rglob('*')) if f.is_file())
        vary('format_zarr', b, 5000, [FILES | x for x in (0, 9, 16, 25, 32, 33, 64)])
        vary('format_anndata', b, 3000, [FILES])


def records():
    for f in ('tfrecord', 'csv', 'jpeg', 'png', 'synthetic'):
        for p in files_of(made('make_formats.py', f)):
            b = p.read_bytes()
            vary('format_' + f, b, 2500)
            if f in ('jpeg', 'png'):
                vary('format_image', b, 2000, [0, 2])
                vary('decoder_' + f, b, 2500, range(8))
            if f == 'csv':
                vary('format_files', b, 200, [0])
    folder = made('make_formats.py', 'indexed_binary')
    for p in files_of(folder, '.indexed_binary', '.mmap_indexed_binary'):
        f = 'format_' + p.suffix[1:]
        sides = [('+' + s.name[len(p.name):], s.read_bytes())
                 for s in p.parent.iterdir()
                 if s.name.startswith(p.name) and s != p]
        vary(f, parts([('o', p.read_bytes())] + sides),
             picks=[FILES, FILES | 1])
        if sides:
            vary(f, sides[0][1], picks=[0])
    for s in ('.idx', '.bin'):
        for p in files_of(folder, s):
            for f in ('format_indexed_binary', 'format_mmap_indexed_binary'):
                vary(f, p.read_bytes() * 2, picks=[0])


def values():
    """Values of decoders."""
    sys.path.insert(0, str(DATA))
    import make_formats as mf
    mf.out = tempfile.mkdtemp(dir=to.parent, prefix='seeds-')
    mf.make_decode()
    for name, data in mf.values:
        if '/' not in name:
            vary('decoder_' + name, data, 2500, range(8))
    for text in (b'12', b'-9223372036854775808', b' 7', b'1e5', b''):
        add('decoder_int', b'\0' + text)
    for text in (b'{"n": 1.5e3, "t": "a\\u00e9"}', b'{"t": [1, {"n": null}]}',
                 b'[1, 2]', b'{"n": 99999999999999999999, "t": true}'):
        vary('decoder_json', text, picks=range(6))
        add('json', text)
    for text in (b'plain', 'h\u00e9llo \u20ac \U0001f600'.encode(), b'\xff'):
        vary('decoder_text', text, picks=[0])


def sequences():
    for f in ('lines', 'fasta', 'fastq'):
        folder = made('make_sequences.py', f)
        for p in files_of(folder, most=1500):
            if p.suffix not in ('.fai', '.gzi', '.bed'):
                vary('format_' + f, p.read_bytes())
        for p in files_of(folder, '.fai', '.gzi', '.bed', most=1500):
            of = p.with_suffix('')
            if p.suffix == '.bed' or not of.exists():
                of = folder / 'small.fa'
            if not of.exists() or of.stat().st_size > 3000:
                continue
            b = of.read_bytes()
            vary(p.suffix[1:], struct.pack('<H', len(b)) + b + p.read_bytes(),
                 picks=PICKS[:4])
    for f, text in (('lines', b'ACGT\t1\nAC\t2.5\nGGTT\t3\n'),
                    ('fasta', b'>a x\nACGTAC\nGT\n>b\nAC\n'),
                    ('fastq', b'@a\nACGT\n+\nIIII\n@b\nAC\n+\nII\n')):
        one, two = (subprocess.run(['bgzip', '-c'], input=t, check=True,
                                   stdout=subprocess.PIPE).stdout
                    for t in (text[:9], text[9:]))
        blocks = one[:-28] + two  # an empty block ends each
        for b in (gzip.compress(text), gzip.compress(text[:9]) +
                  gzip.compress(text[9:]), blocks, one + two, blocks[:-28]):
            vary('format_' + f, b)
        gzi = struct.pack('<QQQ', 1, len(one) - 28, 9)
        fai = b'a\t8\t5\t6\t7\nb\t2\t19\t2\t3\n'
        if f == 'fasta':
            for side, data in ('gzi', gzi), ('gzi', bytes(8)), ('fai', fai):
                vary(side, struct.pack('<H', len(blocks)) + blocks + data)
                vary(side, struct.pack('<H', len(text)) + text + data)
    fa = b'>a x\nACGTAC\nGT\n>b\nAC\n'
    for bed in (b'a\t0\t4\nb\t0\t2\n', b'# c\na\t1\t3\tn\t0.5\t-\n'
                b'b\t0\t2\tm\t7\t+\n', b'track\na 0 1\n'):
        vary('bed', struct.pack('<H', len(fa)) + fa + bed, picks=PICKS[:4])


def codecs():
    import numcodecs
    raw = [b'', b'abc', bytes(range(256)) * 4, b'aaaa' * 300]
    for r in raw:
        z = zlib.compressobj(6, zlib.DEFLATED, -15)
        packed = {'zlib': zlib.compress(r), 'gzip': gzip.compress(r),
                  'inflate': z.compress(r) + z.flush(),
                  'zstd': numcodecs.Zstd(3).encode(r),
                  'lz4': numcodecs.LZ4().encode(r)[4:] if r else b'\0'}
        if r:
            for c in ('lz4', 'zstd', 'blosclz', 'zlib'):
                b = bytes(numcodecs.Blosc(c, shuffle=2).encode(r))
                add('codec_blosc', struct.pack('<H', len(r)) + b)
        for name, b in packed.items():
            for cap in (len(r), len(r) + 1, max(0, len(r) - 1)):
                add('codec_' + name, struct.pack('<H', cap) + bytes(b))
    for b in (b'\x02abc', b'\x02abc\x20\x02', b'\x00a\xe0\x09\x00', b'\x1f'):
        add('codec_lzf', struct.pack('<H', 20) + b)


def tokens():
    words = [b'# k=3\nACG\t4\nCGT\t2\nGTA\t1\n', b'A\nC\nG\nT\n[UNK]\n',
             b'{"A": 0, "C": 1, "AC": 3, "[UNK]": 2}',
             b'# penstock vocab k=3\nAAA\t9\nAAC\t8\n']
    merges = [b'#version: 0.2\nA C\nG T\nAC GT\n', b'A C\nAC G\n']
    model = {'version': '1.0', 'added_tokens': [
        {'id': 0, 'content': '[UNK]', 'special': True}], 'model': {
        'type': 'BPE', 'unk_token': '[UNK]', 'vocab': {
            '[UNK]': 0, 'A': 1, 'C': 2, 'G': 3, 'T': 4, 'AC': 5, 'GT': 6,
            'ACGT': 7}, 'merges': ['A C', 'G T', 'AC GT']}}
    model = json.dumps(model).encode()
    for f in words + merges + [model]:
        for k in range(4):
            add('words', bytes([k]) + f)
        for name in ('none chars onehot kmers frames vocab bpe dm').split():
            for pick in (0, 1, 2, 4, 8, 17):
                add('token_' + name, bytes([pick, 20]) +
                    b'ACGTACCAANUacgtnRYGT' + f)


def texts(build):
    for p in sorted((HERE.parent.parent / 'workloads').glob('*.yaml')):
        b = p.read_bytes()
        add('yaml', b)
        add('yaml', b + b'\0++workload.dataset.num_files_train=4\n'
            b'train.epochs=2\n')
    add('yaml', b'a: &x {b: [1, 2.5, yes, ~]}\nc:\n  <<: *x\n  d: |\n    t\n')
    add('yaml', b'dataset: {format: npz, num_files_train: 8, '
        b'record_length_bytes: 1e3}\nreader: {batch_size: 2}\n')
    for a in (b'workload=unet3d\n++workload.dataset.num_files_train=16\n'
              b'++workload.train.epochs=1', b'dataset.format=npy\n'
              b'+reader.batch_size=2\n~train.seed\nhydra.run.dir=x',
              b"workload.train.computation_time={mean: 0.1, stdev: 0.01}\n"
              b"model.layer_parameters=[1,2]"):
        add('arguments', a)
    settings = []
    for kind in ('store=posix\nbatch_size=4\nshuffle=block:8x2',
                 'format=csv\nformat.header=no\nfields=a,b',
                 'memory=1.5GiB\nthreads=3\non_error=skip:4\nseed=7',
                 'sampler=weighted\nsampler.replacement=true\nsubset=1:9:2',
                 'batch_tokens=4096\npack=best\nshapes=padded\ncast=float16',
                 'cache=ddict\nformat=fasta\nformat.tokens=kmers\nformat.k=4',
                 'decode.x=jpeg:color=rgb\nformat=tfrecord'):
        settings.append(kind)
    for s in settings + ['\n'.join(settings)]:
        add('settings', s.encode())
    for n in (b'1\n2.5\n-3e4\nnan\n', b'0x10 \n\n', b'1,2\n'):
        add('numbers', n)


def results(build):
    """Files that the command writes."""
    cli = str(build / 'src/cli/penstock')
    tmp = pathlib.Path(tempfile.mkdtemp(dir=to.parent, prefix='seeds-'))

    def run(*args):
        return subprocess.run([cli, *args], cwd=tmp, capture_output=True,
                              check=False)
    np.save(tmp / 'a.npy', np.arange(12, dtype='f4').reshape(4, 3))
    np.savez(tmp / 'b.npz', x=np.arange(6), y=np.ones(6))
    (tmp / 'c.csv').write_text('a,b\n1,2\n3,4\n')
    (tmp / 'd.fa').write_text('>a x\nACGT\nAC\n>b\nGG\n')
    add('result', run('load', 'a.npy', '--json').stdout, 20000)
    run('run', 'unet3d_small', 'dataset.num_files_train=14', 'train.epochs=2',
        'dataset.record_length_bytes=1000', 'train.computation_time=0.001',
        'output.folder=runs')
    for p in tmp.rglob('result.json'):
        add('result', p.read_bytes(), 60000)
    for n, f in enumerate(['a.npy', 'b.npz', 'c.csv', 'd.fa']):
        os.utime(tmp / f, (1.5e9, 1.5e9))
        os.utime(tmp, (1.5e9, 1.5e9))
        cache = to.parent / ('seeds-cache-%d' % n)
        run('load', f, 'index_cache=%s' % cache)
        for idx in cache.glob('*.idx'):
            b = bytearray(idx.read_bytes())
            b[16:32] = struct.pack('<QQ', 1, 2)
            b[152:156] = struct.pack('<I', zlib.crc32(b[160:]))
            b[156:160] = struct.pack('<I', zlib.crc32(b[:156]))
            add('index_cache', bytes(b), 20000)
    sys.path.insert(0, str(build / 'python'))
    for n in (0, 1, 3, 20):
        code = ('import penstock\nd = penstock.DDict()\n'
                'for i in range(%d):\n d[i] = b"x" * i\n d["k%%d" %% i] = b""\n'
                'd.persist("s%d")' % (n, n))
        subprocess.run([PYTHON, '-c', code], cwd=tmp, check=False,
                       env={**os.environ, 'PYTHONPATH': str(build / 'python')})
        if (tmp / ('s%d' % n)).exists():
            add('snapshot', (tmp / ('s%d' % n)).read_bytes(), 20000)
    row = {'experiment': 'sweep', 'setup': 'a', 'arm': 'x', 'group': 'g',
           'samples_per_s': 1e4, 'seconds': 1.5, 'n_rows': 10,
           'expected_rows': 10, 'machine': {'cpus': 2, 'cpu': 'c'},
           'data': {'path': 'p', 'bytes': 10}, 'oom': False}
    for e in ('sweep', 'blocks', 'chunks', 'loader', 'formats', 'peers',
              'dna', 'machine', 'shuffle', 'start', 'other'):
        rows = b''
        for arm in 'xy':
            for rate in (1e4, 1.1e4, 0.9e4):
                rows += json.dumps({**row, 'experiment': e, 'arm': arm,
                                    'samples_per_s': rate}).encode() + b'\n'
        add('rows', rows)
    add('rows', b'{"a": {"b": 1}}\n{"a":\nnull\n')


def packed(build):
    """Packed files, from small h5ad files, by the command."""
    import anndata
    import pandas as pd
    import scipy.sparse as sp
    cli = str(build / 'src/cli/penstock')
    tmp = pathlib.Path(tempfile.mkdtemp(dir=to.parent, prefix='seeds-'))
    rng = np.random.default_rng(7)
    for i in range(6):
        n, g = [(5, 4), (40, 30), (3, 300), (20, 7), (1, 1), (64, 9)][i]
        m = rng.poisson(0.4, (n, g)).astype(['f4', 'i4', 'f4', 'u2', 'f8',
                                             'f4'][i])
        if i == 2:
            m = m * 0.37
        obs = pd.DataFrame({'kind': pd.Categorical(['u', 'v'][j % 2]
                                                   for j in range(n)),
                            'score': np.arange(n) / 3},
                           index=['c%d' % j for j in range(n)])
        a = anndata.AnnData(m if i == 3 else sp.csr_matrix(m), obs=obs)
        if i == 1:
            a.layers['l'] = sp.csr_matrix(m)
            a.obsm['p'] = rng.random((n, 2)).astype('f4')
        a.write_h5ad(tmp / ('%d.h5ad' % i))
        subprocess.run([cli, 'convert', '%d.h5ad' % i, '%d.pen' % i],
                       cwd=tmp, check=True, stdout=subprocess.DEVNULL)
    for p in files_of(tmp, '.pen', most=12000):
        vary('format_packed', p.read_bytes(), 12001, [0, 1, 9, 65])


def cellpack():
    for t in range(0, 128):
        add('cellpack', bytes([t, 3]) + bytes(range(16)) + bytes(24) +
            bytes(t))


def messages():
    def frame(kind, data=b'', id=0, at=0, total=None):
        return struct.pack('<B3xIQQQ', kind, len(data), id, at,
                           len(data) if total is None else total) + data

    def request(op, keys, values=None):
        blob = any(isinstance(k, bytes) for k in keys)
        b = struct.pack('<IIQ', op, blob, len(keys))
        for k in keys:
            b += struct.pack('<Q', len(k) if isinstance(k, bytes) else k)
        for v in values or []:
            b += struct.pack('<Q', len(v))
        if blob:
            b += bytes(isinstance(k, bytes) for k in keys)
            b += b''.join(k for k in keys if isinstance(k, bytes))
        return b + b''.join(values or [])
    requests = [request(o, [1, b'ab', 99]) for o in (0, 1)]
    requests += [request(2, [5, b'zz'], [b'value', b'']), request(3, [b'ab']),
                 request(4, []), request(5, []), request(6, []),
                 request(7, []), request(0, [7]), request(9, [])]
    for i, r in enumerate(requests):
        add('request', r)
        add('wire', frame(1, r, i))
        add('wire', frame(1, r[:8], i, 0, len(r)) +
            frame(1, r[8:], i, 8, len(r)) + frame(5))
    add('wire', b''.join(frame(1, r, i) for i, r in enumerate(requests)))
    for id in (0, 1, 1 << 32):
        add('wire', frame(3, b'reply', id) + frame(6))
        add('wire', frame(4, bytes(700), id))
    add('wire', frame(2, struct.pack('<Q', 10)))
    lens = struct.pack('<QQ', 3, (1 << 64) - 1) + b'abc'.ljust(16)
    for op in range(8):
        add('reply', bytes([op, 2]) + lens)
        add('reply', bytes([op, 2]) + requests[0])
        add('reply', bytes([op, 2]) + struct.pack('<Q', 2))


def pickles():
    import torch
    b = torch.zeros(5, dtype=torch.int8)
    c = torch.zeros(3, dtype=torch.bfloat16)
    d = {'b': b, 'c': c}
    f = io.BytesIO()
    torch.save({'a': torch.zeros(4), 'd': d, 'e': d}, f)
    add('torch_file', f.getvalue())
    add('zip', f.getvalue())
    import zipfile
    z = zipfile.ZipFile(f)
    for n in z.namelist():
        if n.endswith('data.pkl'):
            add('unpickle', z.read(n))


def main():
    global to
    build = pathlib.Path(sys.argv[1]).resolve()
    to = pathlib.Path(sys.argv[2]).resolve()
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        out, to = to, pathlib.Path(tmp) / 'out'
        to.mkdir()
        arrays(made('make_golden.py'))
        containers()
        records()
        values()
        sequences()
        codecs()
        tokens()
        texts(build)
        results(build)
        packed(build)
        cellpack()
        messages()
        pickles()
        for p in to.iterdir():
            (out / p.name).mkdir(exist_ok=True)
            for f in p.iterdir():
                f.rename(out / p.name / f.name)
    for name, n in sorted(counts.items()):
        print('%-28s %5d' % (name, n))


if __name__ == '__main__':
    main()
