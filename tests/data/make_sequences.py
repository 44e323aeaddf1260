#!/usr/bin/python3
"""Sequences for the tests, and their content according to htslib (pysam) or
plain Python.

    make_sequences.py lines|fasta|fastq DIRECTORY

The lists are those of make_formats.py.
"""
import gzip
import os
import subprocess
import sys

import numpy as np
import pysam

import make_formats as mf
from make_formats import put, refuse, rng, want, warn

DNA = 'ACGTacgtNnRYKMSWBDHVU*-'
TURN = {a: b for a, b in ('AT', 'CG', 'GC', 'TA', 'UA', 'RY', 'YR', 'KM', 'MK',
                          'SS', 'WW', 'BV', 'VB', 'DH', 'HD', 'NN')}


def path(name):
    return os.path.join(mf.out, name)


def letters(n, alphabet='ACGT'):
    of = np.frombuffer(alphabet.encode(), np.uint8)
    return of[rng.integers(0, len(of), n)].tobytes().decode()


def u8(s):
    return np.frombuffer(s.encode('latin-1'), np.uint8)


def turned(s):
    rna = 'U' in s.upper() and 'T' not in s.upper()
    out = []
    for c in reversed(s):
        d = TURN.get(c.upper(), c.upper())
        d = 'U' if rna and c.upper() == 'A' else d
        out.append(d.lower() if c.islower() else d)
    return ''.join(out)


def wrapped(s, width, eol='\n'):
    return ''.join(s[i:i + width] + eol for i in range(0, len(s), width))


def bgzip(name, data):
    put(name, b'')
    with pysam.BGZFile(path(name), 'wb') as f:
        f.write(data)
    assert gzip.open(path(name)).read() == data


def gzipped(name, data, members=1):
    n = len(data) // members + 1
    put(name, b''.join(gzip.compress(data[i:i + n])
                       for i in range(0, len(data), n)))


def samples(seqs, ids=None, **more):
    """Rows as penstock delivers them; more: lists of further fields."""
    rows = []
    for i, s in enumerate(seqs):
        row = {'seq': u8(s)}
        if ids:
            row['id'] = u8(ids[i])
        for k, v in more.items():
            row[k] = v[i]
        rows.append(row)
    return rows


# ---- lines ----

def make_lines():
    seqs = [letters(n, DNA) for n in (5, 1, 64, 33, 0, 1000, 32, 31)]
    ids = ['design_id_%d' % i for i in range(8)]
    n = [np.int64(len(s)) for s in seqs]
    text = ''.join('%s,%s\n' % x for x in zip(seqs, ids))
    put('ids/a.seq', text.encode())
    want('ids', 'ids', samples(seqs))
    want('ids-all', 'ids format.fields=all', samples(seqs, ids, length=n))
    want('ids-none', 'ids format.fields=all format.column=none',
         samples(seqs, length=n))
    want('turned', 'ids format.rc=always', samples([turned(s) for s in seqs]))
    put('crlf/a.seq', text.replace('\n', '\r\n').encode()[:-2])
    want('crlf', 'crlf format.fields=id', samples(seqs, ids))
    put('tabs/a.seq', text.replace(',', '\t').replace('\n', '\tx,y\n\n')
        .encode())
    want('tabs', 'tabs format.fields=id', samples(seqs, ids))
    put('mark/a.seq', b'\xef\xbb\xbf' + text.encode())
    want('mark', 'mark format.fields=id', samples(seqs, ids))
    put('head/a.seq', b'sequence,doc_id\n' + text.encode())
    want('head', 'head format.header=true format.fields=id',
         samples(seqs, ids))
    full = [s for s in seqs if s]
    put('bare/a.seq', '\n'.join(full).encode())
    put('bare/b.seq', b'\n\n' + '\n\n'.join(full).encode() + b'\n\n')
    want('bare', 'bare', samples(full * 2))
    want('bare-id', 'bare format.fields=id', samples(full * 2, [''] * 14))
    put('txt.txt', '\n'.join(full).encode())
    want('txt', 'txt.txt format=lines', samples(full))
    # numbers are labels
    whole = [3, -1, 0, 2**63 - 1, -2**63, 7, 1, 255]
    put('whole/a.seq', ''.join('%s,%d\n' % x
                               for x in zip(seqs, whole)).encode())
    want('whole', 'whole', samples(seqs, label=[np.int64(x) for x in whole]))
    want('whole-id', 'whole format.column=id format.fields=id',
         samples(seqs, [str(x) for x in whole]))
    part = [1, -2, 3, 1e300, 0, 2.25, -7, 0.1]
    put('part/a.seq', ''.join('%s\t%r\n' % x
                              for x in zip(seqs, part)).encode())
    want('part', 'part', samples(seqs, label=[np.float64(x) for x in part]))
    refuse('ids format.column=label',
           "line 1, column 2: 'design_id_0' is not a number")
    make_blanks(full)
    refuse('ids format.fields=quality', "no field 'quality'")
    # larger than a piece, of one length and of many; windows; compressed
    many = [letters(200) for _ in range(6000)]
    put('even/a.seq', ''.join(s + '\n' for s in many).encode())
    want('even', 'even', samples(many))
    long = [letters(n, 'AUCG') for n in rng.integers(1, 900, 2500)]
    text = ''.join('%s,x%d\n' % (s, i) for i, s in enumerate(long)).encode()
    put('long/a.seq', text)
    put('long/z/b.seq', text)
    ids = ['x%d' % i for i in range(2500)]
    want('long', 'long format.fields=id', samples(long * 2, ids * 2))
    bgzip('pack/a.seq.gz', text)
    gzipped('pack/b.seq.gz', text, 3)
    want('pack', 'pack format.fields=id', samples(long * 2, ids * 2))
    cut = [(s[i:i + 100], x) for s, x in zip(long, ids)
           for i in range(0, len(s), 70)
           if i == 0 or i - 70 + 100 < len(s)]
    want('cut', 'long/a.seq format.window=100 format.step=70 format.fields=id',
         samples([c[0] for c in cut], [c[1] for c in cut]))
    huge = [letters(3_000_000), 'A', letters(2_500_000)]
    put('huge/a.seq', '\n'.join(huge).encode())
    want('huge', 'huge', samples(huge))
    put('bad/nul.seq', b'ACG\nAC\0G\n')
    refuse('bad/nul.seq', 'line 2: NUL byte')
    put('bad/byte.seq', b'ACG\n\nAC\x80G\n')
    refuse('bad/byte.seq', 'line 3: byte 0x80')
    put('bad/cr.seq', b'ACG\rACG\n')
    refuse('bad/cr.seq', 'carriage return')
    put('bad/crend.seq', b'ACG\rACG')
    refuse('bad/crend.seq', 'carriage return')
    put('bad/mac.seq', b'ACG,1\rAC,2\r')
    refuse('bad/mac.seq', 'carriage return')
    put('bad/none.seq', b'\n\r\n')
    refuse('bad/none.seq', 'no samples')
    refuse('pack/b.seq.gz format.gzip_limit=100000', 'bgzip')
    put('small.seq', b'ACGT,a\nAC,b\r\n\nNNNN,c')
    put('small.label.seq', b'ACGT,1\nAC,-2\n')


def make_blanks(seqs):
    """Blanks around columns are ignored."""
    ways = ('%s, %d', ' %s ,%d ', '%s  %d', '%s ; %d\tx', '%s,\t%d',
            '%s\t %d \ty', '   %s %d more words', '%s,%d   ,', '%s ,  %d\r')
    seqs = (seqs * 2)[:len(ways)]
    text = ''.join(w % (s, i - 3) + '\n' + '   \n' * (i % 2)
                   for i, (w, s) in enumerate(zip(ways, seqs)))
    labels = [np.int64(i - 3) for i in range(len(ways))]
    put('blanks/a.seq', text.encode())
    want('blanks', 'blanks', samples(seqs, label=labels))
    put('blanksz/a.seq.gz', gzip.compress(text.encode()) + b'\0' * 700)
    want('blanksz', 'blanksz format.fields=label', samples(seqs, label=labels))
    ids = ['my id', 'my', 'x  y', '', 'a', '']
    text = ''.join(x % s + '\n' for x, s in zip(
        ('%s, my id ', '%s my id', ' %s\t x  y \tz', '%s, ', '%s a', '%s   '),
        seqs))
    put('idblanks/a.seq', text.encode())
    want('idblanks', 'idblanks format.fields=id', samples(seqs[:6], ids))
    cut = [(s[i:i + 7], x) for s, x in zip(seqs, ids)
           for i in range(0, len(s), 7)]
    want('idcut', 'idblanks format.window=7 format.fields=id',
         samples([c[0] for c in cut], [c[1] for c in cut]))
    put('odd/three.seq', b'AC,1\n\nAC, x\nAC,2\n')
    refuse('odd/three.seq format.column=label', "line 3, column 2: 'x' is not")
    refuse('odd/three.seq format.fields=label', "line 3, column 2: 'x' is not")
    want('three', 'odd/three.seq format.fields=id',
         samples(['AC'] * 3, ['1', 'x', '2']))
    put('odd/two.seq', b'AC,1\nAC\n')
    refuse('odd/two.seq format.column=label',
           'line 2, column 2: an empty value is not')
    put('odd/more.seq', b'AC,1\nAC,2 3\n')
    refuse('odd/more.seq format.column=label', "line 2, column 2: '2 3' is not")
    refuse('odd/two.seq format.fields=label format.column=id', 'one of the two')
    put('bad/nul2.seq', b'ACG,1\nAC,1\0\n')
    refuse('bad/nul2.seq', 'line 2: NUL byte')
    put('bad/blank.seq', b' \n  \r\n')
    refuse('bad/blank.seq', 'no samples')
    put('bad/crblank.seq', b'AC\r ,1\n')
    refuse('bad/crblank.seq', 'carriage return')


# ---- fasta ----

def records(n=40):
    sizes = [0, 1, 59, 60, 61, 119, 120, 121, 1000, 5003]
    sizes += list(rng.integers(0, 700, n - len(sizes)))
    return [('r%d' % i, letters(k, DNA)) for i, k in enumerate(sizes)]


def fasta(recs, width=60, eol='\n'):
    return ''.join('>%s some words%s%s' % (name, eol, wrapped(s, width, eol))
                   for name, s in recs).encode()


def check(name, recs):
    """Compared with htslib."""
    with pysam.FastxFile(path(name)) as f:
        got = [(r.name, r.sequence or '') for r in f]
    assert got == [(a, b) for a, b in recs], name


def all_of(recs):
    return samples([s for _, s in recs], [n for n, _ in recs],
                   length=[np.int64(len(s)) for _, s in recs])


def windows(recs, w, step, last):
    """As text and from htslib: (name, from, to)."""
    out = []
    for name, s in recs:
        i = 0
        while i + w <= len(s):
            out.append((name, i, i + w))
            i += step
        done = out and out[-1][0] == name and out[-1][2] == len(s)
        if i < len(s) and not done and last == 'keep':
            out.append((name, i, len(s)))
        if not done and last == 'back' and len(s) >= w:
            out.append((name, len(s) - w, len(s)))
    return out


def fetched(name, cuts):
    with pysam.FastaFile(path(name)) as f:
        return [f.fetch(n, a, b) for n, a, b in cuts]


def make_plain():
    recs = records()
    put('lf/a.fa', fasta(recs))
    check('lf/a.fa', recs)
    want('lf', 'lf', samples([s for _, s in recs]))
    want('lf-all', 'lf format.fields=all', all_of(recs))
    want('lf-turned', 'lf format.rc=always',
         samples([turned(s) for _, s in recs]))
    put('crlf/a.fasta', fasta(recs, 70, '\r\n'))
    put('crlf/b.fna', fasta(recs, 70, '\r\n')[:-2])
    want('crlf', 'crlf format.fields=all', all_of(recs * 2))
    put('one/a.fa', fasta(recs, 10**9)[:-1])
    want('one', 'one format.fields=all', all_of(recs))
    kinds = [('k%d' % i, letters(900)) for i in range(300)]
    put('kinds/a.fa', b''.join(fasta([r], i + 5)
                               for i, r in enumerate(kinds)))
    want('kinds', 'kinds format.fields=all', all_of(kinds))
    cuts = windows(kinds, 64, 50, 'keep')
    pysam.faidx(path('kinds/a.fa'))
    want('kinds-cut', 'kinds/a.fa format.window=64 format.step=50',
         samples(fetched('kinds/a.fa', cuts)))
    return recs


def make_odd():
    """Lines of any length, blanks, empty lines; header lines of all kinds."""
    odd, text = [], '\n\r\n'
    for i, n in enumerate((0, 5, 20000, 4096, 4097, 8192, 30000)):
        s, at = letters(n, DNA), 0
        text += '>%so%d\twords > more\n' % (' ' * (i % 3), i)
        odd.append(('o%d' % i, s))
        while at < n:
            k = int(rng.integers(1, 200))
            eol = ('\n', '\r\n', '\n\n', ' \n', '\n\t')[rng.integers(5)]
            text += s[at:at + k] + eol
            at += k
        if text[-1] != '\n':
            text += '\n'
    put('odd/a.fa', text.encode())
    with pysam.FastxFile(path('odd/a.fa')) as f: # which keeps blanks
        assert [''.join((r.sequence or '').split()) for r in f] == \
            [s for _, s in odd]
    want('odd', 'odd format.fields=all', all_of(odd))
    for w, step, last in ((100, 100, 'keep'), (4096, 1000, 'drop'),
                          (5000, 4999, 'back')):
        cuts = windows(odd, w, step, last)
        by = dict(odd)
        want('odd-%d' % w, 'odd format.window=%d format.step=%d '
             'format.last=%s format.fields=id,length' % (w, step, last),
             samples([by[n][a:b] for n, a, b in cuts], [c[0] for c in cuts],
                     length=[np.int64(b - a) for _, a, b in cuts]))
    bgzip('oddz/a.fa.gz', text.encode())
    want('oddz', 'oddz format.window=5000 format.step=4999 format.last=back',
         samples([by[n][a:b] for n, a, b in cuts]))
    # a longer line, and one after a shorter one, across a mark
    two = [('two', letters(9000)), ('three', letters(9000))]
    text = '>two\n' + wrapped(two[0][1][:4090], 10) + two[0][1][4090:] + \
        '\n>three\n' + wrapped(two[1][1][:4095], 50) + \
        wrapped(two[1][1][4095:], 50)
    put('two/a.fa', text.encode())
    check('two/a.fa', two)
    cuts = windows(two, 7, 7, 'keep')
    by = dict(two)
    want('two', 'two format.window=7',
         samples([by[n][a:b] for n, a, b in cuts]))
    names = '>\nAC\n>  foo\nG\n> bar x\n\n>a,b;c|d x\nT\n>last'
    put('names/a.fa', names.encode())
    want('names', 'names format.fields=id',
         samples(['AC', 'G', '', 'T', ''], ['', 'foo', 'bar', 'a,b;c|d',
                                             'last']))


def make_windows(recs):
    """Windows and intervals against htslib, plain, bgzip and gzip."""
    chrom = [('chr%d' % i, letters(n, 'ACGTNacgt'))
             for i, n in enumerate((70001, 131072, 500, 200000))]
    text = fasta(chrom)
    put('chr/a.fa', text)
    put('chrcr/a.fa', fasta(chrom, 71, '\r\n'))
    bgzip('chrz/a.fa.gz', text)
    gzipped('chrg/a.fa.gz', text, 2)
    for n in ('chr/a.fa', 'chrcr/a.fa', 'chrz/a.fa.gz'):
        pysam.faidx(path(n))
    os.rename(path('chrz/a.fa.gz.fai'), path('keep.fai'))
    os.rename(path('chrz/a.fa.gz.gzi'), path('keep.gzi'))
    case = 0
    for w, step, last in ((1024, 512, 'keep'), (1000, 0, 'drop'),
                          (600, 777, 'back'), (65536, 30000, 'keep'),
                          (300, 9001, 'keep')):
        cuts = windows(chrom, w, step or w, last)
        for n in ('chr/a.fa', 'chrcr/a.fa'):
            got = fetched(n, cuts)
            for k in (n, 'chrz/a.fa.gz', 'chrg/a.fa.gz')[n != 'chr/a.fa':]:
                case += 1
                want('cut%d' % case, '%s format.window=%d format.step=%d '
                     'format.last=%s' % (k, w, step, last), samples(got))
            if n == 'chr/a.fa':
                continue
    want('chrz', 'chrz format.fields=all', all_of(chrom))
    want('chrg', 'chrg format.fields=all', all_of(chrom))
    # a valid index file
    cuts = windows(chrom, 1024, 512, 'keep')
    got = samples(fetched('chr/a.fa', cuts), [c[0] for c in cuts])
    how = 'format.window=1024 format.step=512 format.fields=id format.fai='
    want('fai', 'chr/a.fa %salways' % how, got)
    want('fai-never', 'chr/a.fa %snever' % how, got)
    want('fai-crlf', 'chrcr/a.fa %salways' % how, got)
    put('chrzi/a.fa.gz', open(path('chrz/a.fa.gz'), 'rb').read())
    put('chrzi/a.fa.gz.fai', open(path('keep.fai'), 'rb').read())
    want('fai-bgzip', 'chrzi/a.fa.gz %salways' % how, got)
    put('chrzi/a.fa.gz.gzi', open(path('keep.gzi'), 'rb').read())
    want('gzi', 'chrzi/a.fa.gz %salways' % how, got)
    put('lf/a.fa.fai', b'')
    pysam.faidx(path('lf/a.fa'))
    want('fai-records', 'lf format.fai=always format.fields=all', all_of(recs))
    make_lies(text, got, how)
    make_bed(chrom)


def make_lies(text, got, how):
    """A wrong index file: the data itself is used."""
    fai = open(path('chr/a.fa.fai'), 'rb').read()
    rows = [r.split(b'\t') for r in fai.splitlines()]

    def changed(i, j, v):
        new = [list(r) for r in rows]
        new[i][j] = v
        return b''.join(b'\t'.join(r) + b'\n' for r in new)

    lies = [b'', b'\n', b'garbage\n', fai[:-30], fai[:40], b'\0' * 100,
            fai * 2, b'\n'.join(fai.splitlines()[1:]) + b'\n',
            b'\n'.join(fai.splitlines()[:-1]) + b'\n',
            b'\n'.join(fai.splitlines()[::-1]) + b'\n',
            fai.replace(b'chr1', b'chr7'), fai.replace(b'\t60\t61', b'\t61\t62'),
            fai.replace(b'\t60\t61', b'\t60\t62'),
            fai.replace(b'\t60\t61', b'\t120\t122'),
            fai.replace(b'\t60\t61', b'\t0\t0'),
            fai.replace(b'\n', b'\r\n')]
    lies += [changed(i, j, v) for i in (0, 1, 3) for j in (1, 2)
             for v in (b'0', b'1', b'70000', b'18446744073709551615', b'-1',
                       b'9223372036854775807', b'99999999999999999999999')]
    for i, lie in enumerate(lies):
        put('lie%d/a.fa' % i, text)
        put('lie%d/a.fa.fai' % i, lie)
        if i < 16 or i % 7 == 0:
            want('lie%d' % i, 'lie%d %salways' % (i, how), got)
    gzi = open(path('keep.gzi'), 'rb').read()
    n = len(gzi)
    lies = [b'', gzi[:-3], gzi[:8], gzi[:24], b'\xff' * n,
            gzi[:8] + gzi[24:], gzi[:9] + b'\xff' + gzi[10:],
            gzi[:16] + b'\0' * 8 + gzi[24:], gzi[:n - 8] + b'\1' * 8,
            bytes([gzi[0] + 1]) + gzi[1:], gzi[:17] + b'\7' + gzi[18:]]
    for i, lie in enumerate(lies):
        put('lie%dz/a.fa.gz' % i, open(path('chrz/a.fa.gz'), 'rb').read())
        put('lie%dz/a.fa.gz.fai' % i, open(path('keep.fai'), 'rb').read())
        put('lie%dz/a.fa.gz.gzi' % i, lie)
        want('lie%dz' % i, 'lie%dz %salways' % (i, how), got)
    # between two lines that were checked: an error when read
    at = text.index(b'\n', 30000)
    bad = text[:at] + text[at + 1:at + 2] + b'\n' + text[at + 2:]
    put('lie-inside/a.fa', bad)
    put('lie-inside/a.fa.fai', fai)
    refuse('lie-inside %salways' % how, 'do not match the .fai file')
    at = text.index(b'\n', 30000) + 30
    put('lie-line/a.fa', text[:at] + b'\n' + text[at + 1:])
    put('lie-line/a.fa.fai', fai)
    refuse('lie-line %salways' % how, 'do not match the .fai file')
    # a '>' inside a line does not start a record
    put('lie-head/a.fa', b'>a\nACGT>b\nGG\n')
    put('lie-head/a.fa.fai', b'a\t4\t3\t4\t5\nb\t2\t10\t2\t3\n')
    want('lie-head', 'lie-head format.fai=always', samples(['ACGT>bGG']))
    # a line end that has moved, with a letter in its place
    text = fasta([('a', letters(40 * 10))], 10, '\r\n')
    put('lie-eol/a.fa', text)
    pysam.faidx(path('lie-eol/a.fa'))
    at = text.index(b'\n') + 1 + 22 * 12 + 10
    assert text[at:at + 2] == b'\r\n'
    put('lie-eol/a.fa', text[:at] + b'\nA' + text[at + 2:])
    refuse('lie-eol format.fai=always', 'do not match the .fai file')


def make_bed(chrom):
    by = dict(chrom)
    cuts = []
    for i in range(200):
        name, s = chrom[rng.integers(len(chrom))]
        a = int(rng.integers(len(s)))
        b = int(rng.integers(a, len(s))) + 1
        b = b if i % 7 == 0 else min(b, a + 300)
        cuts.append((name, a, b, '+-.'[rng.integers(3)]))
    bed = '#x\ntrack name=y\n\n' + ''.join(
        '%s\t%d\t%d\t%d\t0.5\t%s\n' % (n, a, b, b % 3, s)
        for n, a, b, s in cuts)
    put('i.bed', bed.encode())
    got = [turned(by[n][a:b]) if s == '-' else by[n][a:b]
           for n, a, b, s in cuts]
    rows = samples(got, [c[0] for c in cuts],
                   label=[np.int64(c[2] % 3) for c in cuts],
                   length=[np.int64(len(g)) for g in got])
    for k in ('chr/a.fa', 'chrz/a.fa.gz', 'chrg/a.fa.gz'):
        want('bed-' + k[:4].strip('/'), '%s format.bed=%s format.fields=all'
             % (k, path('i.bed')), rows)
    put('two-files/a.fa', fasta(chrom[:2]))
    put('two-files/b.fa', fasta(chrom[2:], 33))
    order = [i for i, c in enumerate(cuts) if c[0] in ('chr0', 'chr1')]
    order += [i for i in range(200) if i not in order]
    want('bed-two', 'two-files format.bed=%s format.fields=all'
         % path('i.bed'), [rows[i] for i in order])
    put('j.bed', b'chr0 5 9 peak\r\nchr1 0 10 0.25\r\n')
    want('bed-blank', 'chr/a.fa format.bed=' + path('j.bed'),
         samples([by['chr0'][5:9], by['chr1'][:10]]))
    put('k.bed', b'chr0\t5\t9\t1.5\nchr0\t5\t10\t-2')
    want('bed-float', 'chr/a.fa format.bed=' + path('k.bed'),
         samples([by['chr0'][5:9], by['chr0'][5:10]],
                 label=[np.float64(1.5), np.float64(-2)]))
    put('l.bed', b'\xef\xbb\xbfchr0\t5\t19\tmy peak\t0\t-\n'
        b'chr1\t0\t10\t\t\t-\n chr1 \t 3\t 10 \t0x1\t0\t - \n'
        b'chr1 3 10 - 5 -\nchr1 7\t10\n \t\nbrowser position chr7\t9\n'
        b'chr2\t1\t4\t\t-\t+')
    want('bed-tabs', 'chr/a.fa format.bed=%s format.fields=length'
         % path('l.bed'),
         samples([turned(by['chr0'][5:19]), turned(by['chr1'][:10]),
                  turned(by['chr1'][3:10]), turned(by['chr1'][3:10]),
                  by['chr1'][7:10], by['chr2'][1:4]],
                 length=[np.int64(n) for n in (14, 10, 7, 7, 3, 3)]))
    for i, (text, why) in enumerate((
            ('chr0\t5\n', "line 1 is not an interval: 'chr0\\t5'; write "),
            ('chr0\t5\t9\nchr0\t9\t9\n',
             'line 2: the interval from 9 to 9 is empty'),
            ('#\nchr0\t9\t5\n', 'line 2: the interval from 9 to 5 is empty'),
            ('\t5\t9\n', 'line 1'),
            ('\x1f\x8b\x08', 'compressed'),
            ('#\nchr0\t5\t70002\n',
             "line 2: the interval 5-70002 is outside 'chr0'"),
            ('chr0\t-5\t9\n', 'line 1'), ('chr0\tx\t9\n', 'line 1'),
            ('chr0\t5\t70002\n', "is outside 'chr0'"),
            ('chr9\t5\t9\nchr0\t1\t2\n', "line 1: the sequence 'chr9'"),
            ('chr0\t1\t99999999999999999999\n', 'line 1'),
            ('', 'no intervals'), ('# only\n', 'no intervals'))):
        put('bad%d.bed' % i, text.encode('latin-1'))
        refuse('chr/a.fa format.bed=' + path('bad%d.bed' % i), why)
    put('same/a.fa', fasta([chrom[2], chrom[2]]))
    put('same.bed', b'chr2\t0\t5\n')
    refuse('same format.bed=' + path('same.bed'),
           "two sequences are named 'chr2'")
    put('both/a.fa', fasta([chrom[2]]))
    put('both/b.fa', fasta([chrom[2]], 50))
    refuse('both format.bed=' + path('same.bed'), 'in two files')
    put('one.bed', b'chr2\t0\t5\nchr3\t0\t5\n')
    refuse('both format.bed=' + path('one.bed'), 'not in any file')
    refuse('chr/a.fa format.bed=' + path('no.bed'), 'cannot open the BED file')
    refuse('chr/a.fa format.window=5 format.bed=' + path('i.bed'),
           'one of them')


def make_bad():
    cases = [('nul', b'>a\nAC\0GT\n', 'line 2: NUL byte'),
             ('nulhead', b'>a\0\nACGT\n', 'line 1: NUL byte'),
             ('byte', b'>a\nACGT\nAC\xffGT\n', 'line 3: byte 0xff'),
             ('text', b'\nAC\x1bGT\n', "line 2: a FASTA file must start with "
              "'>', not with 'AC\\x1bGT'"),
             ('long', b'A' * 999, "not with 'AAAAAAAAAAAAAAAAAAAAAAAA...'"),
             ('of', b'>a\nAC\n>b c\nA\1C', "line 4: byte 0x01 where a letter "
              "is expected, in record 2 ('b')"),
             ('fastq', b'@a\nACGT\n+\nIIII\n', 'set format=fastq'),
             ('mac', b'>a\rACGT\r>b\rAC\r', 'inside the header line'),
             ('none', b'\n \n', 'no samples'), ('zero', b'', 'no samples'),
             ('rubbish', rng.bytes(5000), 'line')]
    for name, data, why in cases:
        put('bad/%s.fa' % name, data)
        refuse('bad/%s.fa' % name, why)
    good = open(path('chrz/a.fa.gz'), 'rb').read()
    put('bad/cut.fa.gz', good[:len(good) // 2])
    refuse('bad/cut.fa.gz', 'bgzip block at byte')
    flip = bytearray(good)
    flip[len(good) // 2] ^= 0x55
    put('bad/flip.fa.gz', flip)
    refuse('bad/flip.fa.gz', 'bgzip block at byte')
    good = open(path('chrg/a.fa.gz'), 'rb').read()
    put('bad/cut2.fa.gz', good[:len(good) // 2])
    refuse('bad/cut2.fa.gz', 'damaged or truncated')
    put('bad/tail.fa.gz', good + b'x')
    refuse('bad/tail.fa.gz', 'damaged or truncated')
    make_padded(good)
    refuse('chrg format.gzip_limit=100kB', 'with bgzip')
    refuse('chr format.shift=3', 'window=')
    refuse('chr format.step=3', 'window=')
    refuse('chr format.fields=quality', "no field 'quality'")


def make_padded(good):
    """Zeros after the gzip data are ignored, anything else is not."""
    with gzip.open(path('chrg/a.fa.gz'), 'rt') as f:
        seqs = [''.join(r.split('\n')[1:]) for r in f.read().split('>')[1:]]
    put('zeros/a.fa.gz', good + b'\0' * 512)
    put('zeros/b.fa.gz', good + b'\0')
    packed = open(path('chrz/a.fa.gz'), 'rb').read()
    put('zeros/c.fa.gz', packed + b'\0' * 300000)
    put('zeros/d.fa.gz', packed[:-28] + b'\0' * 17) # no last, empty block
    put('zeros/d.fa.gz.fai', open(path('keep.fai'), 'rb').read())
    want('zeros', 'zeros format.fai=always', samples(seqs * 4))
    put('zeros/d.fa.gz.gzi', open(path('keep.gzi'), 'rb').read())
    want('zeros-gzi', 'zeros format.fai=always', samples(seqs * 4))
    for i, tail in enumerate((b'\0\0x', b'\0' * 20 + b'\x1f\x8b', b'x\0')):
        put('bad/zeros%d.fa.gz' % i, good + tail)
        refuse('bad/zeros%d.fa.gz' % i, 'damaged or truncated')
        put('bad/bzeros%d.fa.gz' % i, packed + tail)
        refuse('bad/bzeros%d.fa.gz' % i, 'bgzip block at byte')
    put('bad/both.fa.gz', packed + good)
    refuse('bad/both.fa.gz', 'gzip from there on')
    put('both-ways/a.fa.gz', good + packed)
    want('both-ways', 'both-ways', samples(seqs * 2))


def make_warned():
    """bgzip files truncated between blocks, and short records."""
    text = fasta([('c%d' % i, letters(30000)) for i in range(9)])
    bgzip('eof/a.fa.gz', text)
    whole = open(path('eof/a.fa.gz'), 'rb').read()
    assert whole[-28:].endswith(b'BC\2\0\x1b\0\3' + b'\0' * 9)
    warn('eof', 'none')
    at = 0
    while at < len(whole) - 28:
        at += int.from_bytes(whole[at + 16:at + 18], 'little') + 1
        put('cut%d.fa.gz' % at, whole[:at])
        warn('cut%d.fa.gz' % at, 'bad', 'end-of-file block is missing')
    put('cut.fa.gz', whole[:at])
    put('cut.fa.gz.fai', open(path('keep.fai'), 'rb').read())
    warn('cut.fa.gz format.fai=always', 'bad', 'end-of-file block is missing')
    warn('zeros/c.fa.gz', 'none')
    warn('zeros/d.fa.gz', 'bad', 'end-of-file block is missing')
    short = [('a', letters(9)), ('b', letters(10)), ('c', ''),
             ('d', letters(31))]
    put('short/a.fa', fasta(short))
    put('short/b.fa', fasta(short * 400, 7))
    put('short/c.fa', fasta(short[1:2]))
    for last in 'back', 'drop':
        how = ' format.window=10 format.last=' + last
        warn('short/a.fa' + how, 'note', '2 of 4 records are shorter than '
             'format.window=10 (format.last=%s) and yield no samples' % last)
        warn('short' + how, 'note', '802 of 1,605 records are shorter')
        warn('short/c.fa' + how, 'none')
    warn('short/a.fa format.window=10', 'note', '1 of 4 records are empty')
    warn('short/a.fa', 'none')
    refuse('short format.window=50 format.last=back', 'last=keep')


def make_fasta():
    make_windows(make_plain())
    make_odd()
    huge = [('h', letters(10_000_000)), ('i', letters(99))]
    put('huge/a.fa', fasta(huge, 10**9))
    cuts = windows(huge, 500_000, 499_999, 'keep')
    by = dict(huge)
    want('huge', 'huge format.window=500000 format.step=499999',
         samples([by[n][a:b] for n, a, b in cuts]))
    big = [('a', letters(70)), ('big', letters(5_000_000)), ('c', 'ACGT')]
    bgzip('big/a.fa.gz', fasta(big))
    want('big', 'big format.fields=id', samples([s for _, s in big],
                                                [n for n, _ in big]))
    make_bad()
    make_warned()
    one = letters(50000)
    put('drawn.txt', one.encode())
    put('drawn.fa', fasta([('x', one)]))
    bgzip('drawn.fa.gz', fasta([('x', one)]))
    put('small.fa', b'>a b\nACGTA\nCGT\n>c\r\nAC\r\n\r\n>d\nA\nCGT\nAC')
    bgzip('small.fa.gz', b'>a\nACGTACGT\nAC\n')
    gzipped('small2.fa.gz', b'>a\nACGTACGT\nAC\n')


# ---- fastq ----

def make_fastq():
    recs = [('q%d' % i, letters(n, 'ACGTN'),
             ''.join(chr(33 + x) for x in rng.integers(0, 94, n)))
            for i, n in enumerate([1, 60, 61, 0, 150, 507, 33] * 30)]

    def rows(recs):
        return samples([r[1] for r in recs], [r[0] for r in recs],
                       quality=[u8(r[2]) - 33 for r in recs],
                       length=[np.int64(len(r[1])) for r in recs])

    def text(width, eol='\n', again=False):
        return ''.join('@%s x%s%s%s+%s%s%s%s' % (
            n, eol, wrapped(s, width, eol), eol if not s else '',
            n if again else '', eol, wrapped(q, width, eol),
            eol if not s else '') for n, s, q in recs).encode()

    put('four/a.fq', text(10**9))
    with pysam.FastxFile(path('four/a.fq')) as f:
        assert [(r.name, r.sequence or '', r.quality or '')
                for r in f] == recs
    want('four', 'four format.fields=all', rows(recs))
    want('four-seq', 'four', samples([r[1] for r in recs]))
    want('four-turned', 'four format.rc=always format.fields=quality',
         samples([turned(r[1]) for r in recs],
                 quality=[u8(r[2])[::-1] - 33 for r in recs]))
    put('many/a.fastq', text(40, '\n', True))
    with pysam.FastxFile(path('many/a.fastq')) as f:
        assert [(r.name, r.sequence or '', r.quality or '')
                for r in f] == recs
    want('many', 'many format.fields=all', rows(recs))
    put('crlf/a.fq', text(10**9, '\r\n')[:-2])
    want('crlf', 'crlf format.fields=all', rows(recs))
    put('crlf2/a.fq', text(17, '\r\n', True))
    want('crlf2', 'crlf2 format.fields=all', rows(recs))
    bgzip('pack/a.fq.gz', text(10**9))
    gzipped('pack/b.fastq.gz', text(30), 4)
    want('pack', 'pack format.fields=all', rows(recs * 2))
    # lines of any length
    odd = ''
    for n, s, q in recs:
        k, j = [int(rng.integers(1, len(s) + 2)) for _ in range(2)]
        odd += '@%s\n%s\n%s\n+\n%s\n%s\n%s' % (n, s[:k], s[k:], q[:j], q[j:],
                                               '\n' * int(rng.integers(2)))
        if len(q) <= j:
            odd = odd.rstrip('\n') + '\n'
    put('odd/a.fq', odd.encode())
    want('odd', 'odd format.fields=all', rows(recs))
    cut = [(s[i:i + 50], q[i:i + 50], n) for n, s, q in recs
           for i in range(0, len(s), 30) if i == 0 or i + 20 < len(s)]
    for k in ('four', 'many', 'odd', 'crlf2', 'pack/a.fq.gz'):
        want('cut-' + k[:4], k + ' format.window=50 format.step=30 '
             'format.fields=id,quality',
             samples([c[0] for c in cut], [c[2] for c in cut],
                     quality=[u8(c[1]) - 33 for c in cut]))
    for name, data, why in (
            ('more', b'@a\nACGT\n+\nIIIII\n', 'line 4: more quality values '
             "than the 4 letters, in record 1 ('a')"),
            ('fewer', b'@x\nA\n+\nI\n@a b\nACGT\n+\nIII\n@b\nA\n+\nI\n',
             'line 9: more quality values than the 4 letters (the first '
             "quality line has 3), in record 2 ('a')"),
            ('cut', b'@a\nACGT\n+\nIII', "line 4: truncated: the file ends "
             "after 4 letters and 3 quality values, in record 1 ('a')"),
            ('cut2', b'@a\nACGT\n', 'truncated: the file ends after'),
            ('cut5', b'@a\nAC\n+\nI', 'after 2 letters and 1 quality value, '),
            ('cut3', b'@a', 'truncated: the file ends after'),
            ('cut4', b'@a\nACG\n+\nIII\n@b', ' 0 letters and 0 quality values, '
             "in record 2 ('b')"),
            ('gap', b'@x\nA\n+\nI\n@a\nAC GT\n+\nIIII\n',
             "line 6: blank before letter 3 of the sequence, in record 2 "
             "('a')"),
            ('gap2', b'@a\nAC\tGT\n+\nIIIII\n', 'line 2: blank before'),
            ('gap3', b'@a\n ACGT\n+\nIIII\n', 'line 2: blank before letter '
             '1 of'),
            ('gap4', b'@a\nACGT\n+\nII II\n', 'line 4: blank before quality '
             "value 3 of the quality line, in record 1 ('a')"),
            ('gap5', b'@a\nAC\n G\n+\nIII\n', 'line 3: blank before letter '
             '3 of'),
            ('gap6', b'@a\nAC\rGT\n+\nIIII\n', 'line 2: carriage return '
             'before letter 3 of'),
            ('gap7', b'@a\n' + b'AC' * 200000 + b' GT\n+\n' + b'I' * 400002,
             'line 2: blank before letter 400001 of'),
            ('no', b'ACGT\n', "a record must start with '@', not with 'ACGT'"),
            ('no2', b'@a\nAC\n+\nII\n\x1f\x8b' + b'y' * 99, 'line 5: a record '
             "must start with '@', not with '\\x1f\\x8byyyyyyyyyyyyyyyyyyyyyy"
             "...'; check whether record 1 ('a') has more quality values "
             "than letters"),
            ('long', b'@' + b'n' * 70000 + b'\nA\0', "in record 1 ('nnnnnn"),
            ('mac', b'@a\rACGT\r+\rIIII\r', 'inside the header line'),
            ('fasta', b'>a\nACGT\n', 'set format=fasta'),
            ('nul', b'@a\nAC\0T\n+\nIIII\n', 'line 2: NUL byte'),
            ('blank', b'@a\nACGT\n+\nII\x07I\n', 'line 4: byte 0x07'),
            ('none', b'', 'no samples'), ('rubbish', rng.bytes(999), 'line')):
        put('bad/%s.fq' % name, data)
        refuse('bad/%s.fq' % name, why)
    put('tail/a.fq', b'@a\nACGT \n+\nIIII\t\n \n@b\nAC\t\nGT\n  \n+\nIII \nI')
    want('tail', 'tail format.fields=quality',
         samples(['ACGT'] * 2, quality=[u8('IIII') - 33] * 2))
    put('small.fq', b'@a b\nACGTA\n+\nIIIII\n@c\r\nAC\r\nG\r\n+c\r\n#I\r\n!\r\n')


MAKE = {'lines': make_lines, 'fasta': make_fasta, 'fastq': make_fastq}


def main():
    mf.out = sys.argv[2]
    os.makedirs(mf.out, exist_ok=True)
    MAKE[sys.argv[1]]()
    for name, lines in [('manifest', mf.manifest), ('refused', mf.refused),
                        ('warned', mf.warned)]:
        put(name, ''.join(x + '\n' for x in lines).encode())


if __name__ == '__main__':
    main()
