#!/usr/bin/python3
"""Test files of a format, written by other implementations of it.

    make_formats.py FORMAT DIRECTORY

manifest: case, tab, settings (a path and options); CASE.want describes the
contents: name, type, shape and bytes per sample and field. refused: settings,
tab, part of the error message.
"""
import os
import struct
import sys

import numpy as np

rng = np.random.default_rng(7)
out = ''
manifest, refused, warned = [], [], []


def put(name, data):
    path = os.path.join(out, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(data)
    return name


def want(case, settings, samples):
    """samples: a list of {field: array}, in the order of the fields."""
    manifest.append('%s\t%s' % (case, settings))
    b = bytearray()
    for s in samples:
        for name, a in s.items():
            a = np.asarray(a)
            b += name.encode().ljust(64, b'\0')
            b += a.dtype.name.encode().ljust(32, b'\0')
            b += struct.pack('<I', a.ndim)
            b += struct.pack('<%dQ' % a.ndim, *a.shape)
            a = np.ascontiguousarray(a)
            b += struct.pack('<Q', a.nbytes) + a.tobytes()
    put(case + '.want', b)


def warn(settings, kind, text=''):
    """kind: bad (verify fails), note, or none (there is no warning)."""
    warned.append('%s\t%s\t%s' % (settings, kind, text))


def refuse(settings, text):
    refused.append('%s\t%s' % (settings, text))


# ---- tfrecord ----

CRC = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
    CRC.append(i)


def crc32c(b):
    c = 0xffffffff
    for x in b:
        c = c >> 8 ^ CRC[(c ^ x) & 0xff]
    return c ^ 0xffffffff


def masked(b):
    c = crc32c(b)
    return struct.pack('<I', ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff)


def frame(payload):
    n = struct.pack('<Q', len(payload))
    return n + masked(n) + payload + masked(payload)


def varint(v):
    v &= (1 << 64) - 1
    b = b''
    while v >= 0x80:
        b += bytes([v & 0x7f | 0x80])
        v >>= 7
    return b + bytes([v])


def message(number, b):
    return varint(number << 3 | 2) + varint(len(b)) + b


def feature(v, packed=True):
    if v is None:
        return b''
    if isinstance(v, list):
        return message(1, b''.join(message(1, x) for x in v))
    if isinstance(v, bytes):
        return message(1, message(1, v))
    v = np.atleast_1d(v)
    if v.dtype == np.float32:
        return message(2, message(1, v.astype('<f4').tobytes()) if packed else
                       b''.join(b'\x0d' + x.tobytes() for x in v))
    ints = [varint(int(x)) for x in v]
    return message(3, message(1, b''.join(ints)) if packed else
                   b''.join(b'\x08' + x for x in ints))


def example(fields, packed=True, order=1):
    m = b''
    for name, v in list(fields.items())[::order]:
        m += message(1, message(1, name.encode()) +
                     message(2, feature(v, packed)))
    return message(1, m)


def u8(b):
    return np.frombuffer(b, np.uint8)


def make_tfrecord():
    # like DLIO: equal arrays
    images = [rng.bytes(48) for _ in range(7)]
    data = [example({'image': b, 'size': np.int64(48)}) for b in images]
    put('dlio/a.tfrecord', b''.join(map(frame, data[:4])))
    put('dlio/b.tfrecord', b''.join(map(frame, data[4:])))
    both = [{'image': u8(b), 'size': np.int64(48)} for b in images]
    want('dlio', 'dlio', both)
    want('dlio-size', 'dlio format.fields=size',
         [{'size': s['size']} for s in both])
    want('dlio-full', 'dlio format.scan=full', both)
    want('dlio-nocrc', 'dlio format.crc=false', both)
    want('dlio-bytes', 'dlio format.decode=false',
         [{'bytes': u8(b)} for b in data])
    want('dlio-plain', 'dlio format.decode=false format.crc=false',
         [{'bytes': u8(b)} for b in data])
    # other types and lengths, packed and unpacked, in another order
    rows = []
    for i in range(9):
        rows.append({
            'name': ('%d' % i * i).encode(),
            'f': rng.random(3, np.float32),
            'i': rng.integers(-2**62, 2**62, i % 4),
            'label': np.int64(-i),
        })
    recs = [example(r, i % 2 == 0, 1 if i % 3 else -1)
            for i, r in enumerate(rows)]
    # the first record defines the order of fields
    names = list(rows[0])[::-1]
    rows = [{k: u8(r[k]) if k == 'name' else r[k] for k in names}
            for r in rows]
    put('mixed/a.tfrecords', b''.join(map(frame, recs)))
    want('mixed', 'mixed', rows)
    want('mixed-some', 'mixed format.fields=label,f',
         [{k: r[k] for k in names if k in ('label', 'f')} for r in rows])
    # features that some records lack, and unknown fields in between
    extra = b'\x98\x06\x05' + message(77, b'xyz') + b'\x95\x06abcd'
    sparse = [
        extra + example({'x': np.float32([1, 2])}),
        example({'x': np.float32([3, 4]), 'y': b'abc'}),
        example({'y': b'', 'x': None}) + extra,
    ]
    put('sparse/a.tfrecord', b''.join(map(frame, sparse)))
    nothing = np.float32([])
    want('sparse', 'sparse', [
        {'x': np.float32([1, 2]), 'y': u8(b'')},
        {'x': np.float32([3, 4]), 'y': u8(b'abc')},
        {'x': nothing, 'y': u8(b'')},
    ])
    # the same name twice: the last one counts
    put('twice/a.tfrecord', frame(example({'x': np.float32([1])}) +
                                  example({'x': np.float32([2])})))
    want('twice', 'twice', [{'x': np.float32(2)}])
    # records of equal length that differ inside
    alike = [example({'a': b'12', 'b': b'3456'}),
             example({'a': b'1234', 'b': b'56'}),
             example({'a': b'12', 'b': b'3456'})]
    put('alike/a.tfrecord', b''.join(map(frame, alike)))
    refuse('alike', 'scan=full')
    want('alike', 'alike format.scan=full', [
        {'a': u8(b'12'), 'b': u8(b'3456')}, {'a': u8(b'1234'), 'b': u8(b'56')},
        {'a': u8(b'12'), 'b': u8(b'3456')}])
    # many small and some large ones, to test reading in pieces
    many = [{'i': np.arange(i % 7, dtype=np.int64)} for i in range(40000)]
    put('many/a.tfrecord', b''.join(frame(example(r)) for r in many))
    want('many', 'many', many)
    big = [{'x': rng.integers(0, 99, n, np.uint8)} for n in (70000, 1, 200000)]
    put('big/a.tfrecord', b''.join(frame(example({'x': r['x'].tobytes()}))
                                   for r in big))
    want('big', 'big', big)
    # to be rejected
    one = frame(data[0])
    put('bad/cut.tfrecord', one + one[:-1])
    refuse('bad/cut.tfrecord', 'the file ends within record 1')
    put('bad/crc.tfrecord', one[:8] + b'1234' + one[12:])
    refuse('bad/crc.tfrecord', 'crc of its length')
    put('bad/gz.tfrecord', b'\x1f\x8b\x08\0\n' + bytes(99))
    refuse('bad/gz.tfrecord', "no TFRecord at byte 0, found "
           "'\\x1f\\x8b\\x08\\x00\\n")
    n = struct.pack('<Q', 2**63)
    put('bad/long.tfrecord', n + masked(n) + one)
    refuse('bad/long.tfrecord', 'truncated: ')
    put('bad/data.tfrecord', one + frame(data[1])[:-20] + b'x' * 20 + one)
    refuse('bad/data.tfrecord', 'sample 1: damaged')
    put('bad/text.tfrecord', frame(b'hello, world'))
    refuse('bad/text.tfrecord', 'decode=false')
    put('bad/strings.tfrecord', frame(example({'x': [b'a', b'b']})))
    refuse('bad/strings.tfrecord', 'several strings')
    put('bad/none.tfrecord', frame(b''))
    refuse('bad/none.tfrecord', 'none of the requested features')
    refuse('dlio format.fields=nothing', 'none of the requested features')
    refuse('dlio format.fields=imag', "did you mean 'image'?")
    put('bad/kinds.tfrecord', frame(example({'x': b'abc'})) +
        frame(example({'x': np.float32([1])})))
    refuse('bad/kinds.tfrecord', 'has a different type')
    put('kinds/a.tfrecord', frame(example({'x': b'abc'})))
    put('kinds/b.tfrecord', frame(example({'x': np.float32([1])})))
    refuse('kinds', 'has a different type')
    put('bad/empty.tfrecord', b'')
    refuse('bad/empty.tfrecord', 'no samples')
    # for damage
    put('small.tfrecord', b''.join(map(frame, [
        example({'a': b'12345', 'b': np.int64([1, 300])}),
        example({'a': b'123', 'f': np.float32([1])}, False)])))
    put('same.tfrecord', b''.join(map(frame, [
        example({'a': b'12345'}), example({'a': b'67890'})])))


# ---- indexed_binary ----

def indexed(name, samples, offsets=None, gap=b''):
    data, off = b'', []
    for s in samples:
        off.append(len(data))
        data += s + gap
    put(name, data)
    put(name + '.off.idx', np.array(offsets or off, '<u8').tobytes())
    put(name + '.sz.idx', np.array([len(s) for s in samples],
                                   '<u8').tobytes())


def make_indexed_binary():
    same = [rng.bytes(24) for _ in range(8)]
    indexed('dlio/a.indexed_binary', same[:5])
    indexed('dlio/b.indexed_binary', same[5:])
    want('dlio', 'dlio', [{'x': u8(s)} for s in same])
    want('typed', 'dlio format.dtype=float32 format.shape=2x3',
         [{'x': np.frombuffer(s, np.float32).reshape(2, 3)} for s in same])
    want('axis', 'dlio format.dtype=int16',
         [{'x': np.frombuffer(s, np.int16)} for s in same])
    some = [rng.bytes(n) for n in (3, 0, 40, 7, 7, 1)]
    indexed('some/a.mmap_indexed_binary', some)
    want('some', 'some', [{'x': u8(s)} for s in some])
    indexed('gaps/a.indexed_binary', same, gap=b'abc')
    want('gaps', 'gaps', [{'x': u8(s)} for s in same])
    # like DLIO with a small buffer: offsets restart
    indexed('again/a.indexed_binary', same[:4], [0, 24, 0, 24])
    want('again', 'again', [{'x': u8(same[i])} for i in (0, 1, 0, 1)])
    refuse('again format.dtype=float32 format.shape=5', 'shape=')
    refuse('some format.dtype=int16', 'sample 0 has 3 bytes')
    put('bad/none.indexed_binary', b'abc')
    refuse('bad/none.indexed_binary', 'the index is missing')
    indexed('bad/far.indexed_binary', same, [0] * 7 + [2**63])
    refuse('bad/far.indexed_binary', 'sample 7 is outside the file')
    indexed('bad/wrap.indexed_binary', same, [0] * 7 + [2**64 - 8])
    refuse('bad/wrap.indexed_binary', 'sample 7 is outside the file')
    indexed('bad/odd.indexed_binary', same)
    put('bad/odd.indexed_binary.sz.idx', b'1234567')
    refuse('bad/odd.indexed_binary', 'whole number')
    indexed('bad/few.indexed_binary', same)
    put('bad/few.indexed_binary.sz.idx', bytes(8))
    refuse('bad/few.indexed_binary', '8 offsets, 1 sizes')
    indexed('bad/long.indexed_binary', same[:1])
    put('bad/long.indexed_binary.sz.idx', bytes(2 << 20))
    refuse('bad/long.indexed_binary', 'larger than')
    # an index as format_driver.h derives it
    put('self.bin', np.array([8, 0, 24, 8, 24, 20], '<u8').tobytes())


# ---- images ----

def encoded(im, kind, **kw):
    import io
    b = io.BytesIO()
    im.save(b, kind, **kw)
    return b.getvalue()


def picture(h, w, c, smooth=True):
    """An image with edges and gradients, or noise."""
    if not smooth:
        a = rng.integers(0, 255, (h, w, c), np.uint8)
    else:
        y, x, k = np.mgrid[0:h, 0:w, 0:c]
        a = (x * 5 + y * (3 + k) + 40 * (x > w // 2) * k).astype(np.uint8)
    return a[:, :, 0] if c == 1 else a


def pixels(data):
    import io
    from PIL import Image
    return np.array(Image.open(io.BytesIO(data)))


def odd_sampling():
    """A JPEG of 64x32 with eight blocks of luma to one of chroma (4x2), which
    Pillow does not write: its headers, and blocks that have only a mean, in
    the codes of the standard's tables."""
    from PIL import Image
    data = encoded(Image.new('RGB', (64, 32)), 'JPEG', subsampling=0)
    at = data.index(b'\xff\xc0')
    scan = data.index(b'\xff\xda') + 14
    step = '100' '111' '1010'       # luma: 7 more than the block before
    back = '100' '000' '1010'       # 7 less
    red = '110' '101' '00'          # chroma: 5 more
    unit = step * 6 + back * 2 + '00' '00' + red
    bits = unit * 4
    bits += '1' * (-len(bits) % 8)
    body = int(bits, 2).to_bytes(len(bits) // 8, 'big')
    return (data[:at + 11] + b'\x42' + data[at + 12:scan] +
            body.replace(b'\xff', b'\xff\0') + b'\xff\xd9')


def make_jpeg():
    from PIL import Image
    for case, sizes, c in [('grey', [(17, 23)] * 5, 1),
                           ('colour', [(16, 48)] * 5, 3),
                           ('sizes', [(8, 8), (1, 1), (33, 7), (7, 100)], 3),
                           ('greys', [(9, 5), (300, 200), (1, 64)], 1)]:
        want_all = []
        for i, (h, w) in enumerate(sizes):
            a = picture(h, w, c, i % 2)
            kw = [{}, {'quality': 95, 'subsampling': 0},
                  {'progressive': True, 'subsampling': 1},
                  {'optimize': True, 'quality': 30}, {'restart': 1}][i % 5]
            kw.pop('restart', None)
            data = encoded(Image.fromarray(a), 'JPEG', **kw)
            put('%s/%d.jp%sg' % (case, i, 'e' * (i % 2)), data)
            want_all.append({'x': pixels(data)})
        want(case, case, want_all)
    # a large comment and an EXIF-like segment before the frame
    data = encoded(Image.fromarray(picture(20, 30, 3)), 'JPEG')
    seg = b'\xff\xe1' + struct.pack('>H', 65535) + bytes(65533)
    data = data[:2] + seg + b'\xff\xff\xff\xfe\0\5abc' + data[2:]
    put('long/a.jpg', data)
    want('long', 'long', [{'x': pixels(data)}])
    put('odd/a.jpg', odd_sampling())
    want('odd', 'odd', [{'x': pixels(odd_sampling())}])
    # grey among colour
    g = encoded(Image.fromarray(picture(8, 8, 1)), 'JPEG')
    c = encoded(Image.fromarray(picture(8, 8, 3)), 'JPEG')
    put('mixed/a.jpg', g)
    put('mixed/b.jpg', c)
    rgb = np.repeat(pixels(g)[:, :, None], 3, 2)
    want('mixed', 'mixed', [{'x': rgb}, {'x': pixels(c)}])
    want('as-rgb', 'mixed/a.jpg format.color=rgb', [{'x': rgb}])
    import io
    im = Image.open(io.BytesIO(c))
    im.draft('L', None)
    want('as-grey', 'mixed/b.jpg format.color=grey', [{'x': np.array(im)}])
    # to be rejected
    big = encoded(Image.fromarray(picture(64, 64, 3, False)), 'JPEG')
    for n in (len(big) // 2, len(big) - 40):
        put('bad/cut%d.jpg' % n, big[:n])
        refuse('bad/cut%d.jpg' % n, 'damaged')
    put('bad/text.jpg', b'hello, world')
    refuse('bad/text.jpg', "not a JPEG file: it starts with 'hello, w'")
    put('bad/marker.jpg', big[:2] + b'x' + big[3:])
    refuse('bad/marker.jpg', 'a marker (0xff) at byte 2, found 0x78')
    ink = encoded(Image.fromarray(picture(19, 33, 3)).convert('CMYK'), 'JPEG')
    put('ink/a.jpg', ink)
    want('ink', 'ink', [{'x': np.array(Image.open(
        io.BytesIO(ink)).convert('RGB'))}])
    at = big.index(b'\xff\xc0')
    wide = big[:at + 5] + b'\xff\xff\xff\xff' + big[at + 9:]
    put('bad/bomb.jpg', wide)
    refuse('bad/bomb.jpg', 'max_pixels')
    refuse('bad/bomb.jpg format.max_pixels=4294836225', 'out of range')
    put('bad/air.jpg', big[:at + 5] + struct.pack('>HH', 13000, 13000) +
        big[at + 9:])
    refuse('bad/air.jpg', 'too small for an image of this size')
    put('bad/lossless.jpg', big[:at + 1] + b'\xc3' + big[at + 2:])
    refuse('bad/lossless.jpg', 'JPEG process')
    put('small.jpg', encoded(Image.fromarray(picture(9, 9, 3)), 'JPEG',
                             quality=20))


def make_png():
    import io
    import zlib
    from PIL import Image
    alpha = picture(10, 12, 3)[:, :, 1]
    ims = {
        'grey': Image.fromarray(picture(11, 13, 1)),
        'rgb': Image.fromarray(picture(11, 13, 3, False)),
        'rgba': Image.fromarray(np.dstack([picture(10, 12, 3), alpha])),
        'la': Image.merge('LA', [Image.fromarray(picture(10, 12, 1)),
                                 Image.fromarray(alpha)]),
        'grey16': Image.fromarray(
            rng.integers(0, 65535, (9, 7)).astype(np.uint16)),
    }
    for case, im in ims.items():
        data = encoded(im, 'PNG')
        put('%s/a.png' % case, data)
        a = pixels(data)
        want(case, case, [{'x': a.astype(np.uint16) if case == 'grey16'
                           else a}])
    palette = ims['rgb'].quantize(17)
    data = encoded(palette, 'PNG')
    put('palette/a.png', data)
    want('palette', 'palette', [{'x': np.array(palette.convert('RGB'))}])
    data = encoded(palette, 'PNG', transparency=b'\0\x80\xff\x10')
    put('clear/a.png', data)
    with Image.open(io.BytesIO(data)) as im:
        want('clear', 'clear', [{'x': np.array(im.convert('RGBA'))}])
    for bits in (1, 2, 4):
        few = encoded(ims['rgb'].quantize(1 << bits), 'PNG', bits=bits)
        put('few%d/a.png' % bits, few)
        with Image.open(io.BytesIO(few)) as im:
            want('few%d' % bits, 'few%d' % bits,
                 [{'x': np.array(im.convert('RGB'))}])
    one = Image.fromarray(picture(9, 21, 1)).convert('1')
    put('one/a.png', encoded(one, 'PNG'))
    want('one', 'one', [{'x': np.array(one.convert('L'))}])

    def chunk(kind, body):
        return struct.pack('>I', len(body)) + kind + body + struct.pack(
            '>I', zlib.crc32(kind + body))

    def image(h, w, depth, kind, rows, extra=b'', interlace=0):
        return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack(
            '>IIBBBBB', w, h, depth, kind, 0, 0, interlace)) + extra +
            chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))

    deep = rng.integers(0, 65535, (6, 5, 3)).astype('>u2')
    put('rgb16/a.png', image(6, 5, 16, 2, b''.join(
        b'\0' + r.tobytes() for r in deep)))
    want('rgb16', 'rgb16', [{'x': deep.astype(np.uint16)}])
    # grey next to colour, sizes differ
    put('mixed/a.png', encoded(ims['grey'], 'PNG'))
    put('mixed/b.png', encoded(ims['rgba'], 'PNG'))
    put('mixed/c.png', encoded(palette, 'PNG'))
    want('mixed', 'mixed', [{'x': np.array(im.convert('RGBA'))} for im in
                            (ims['grey'], ims['rgba'], palette)])
    put('sizes/a.png', encoded(ims['grey'], 'PNG'))
    put('sizes/b.png', encoded(ims['grey'].resize((100, 3)), 'PNG'))
    want('sizes', 'sizes', [{'x': np.array(ims['grey'])}, {
        'x': np.array(ims['grey'].resize((100, 3)))}])
    want('as-rgb', 'sizes/a.png format.color=rgb',
         [{'x': np.array(ims['grey'].convert('RGB'))}])
    # to be rejected
    good = encoded(ims['rgb'], 'PNG')
    put('bad/cut.png', good[:-40])
    refuse('bad/cut.png', 'damaged')
    put('bad/noend.png', good[:-12])
    refuse('bad/noend.png', 'damaged')
    put('bad/flip.png', good[:60] + bytes([good[60] ^ 1]) + good[61:])
    refuse('bad/flip.png', 'damaged')
    put('bad/text.png', b'hello')
    refuse('bad/text.png', "not a PNG file: it starts with 'hello'")
    put('bad/bomb.png', image(60000, 60000, 8, 2, b'\0' * 100))
    refuse('bad/bomb.png', 'too small for')
    put('bad/big.png', image(20000, 20000, 1, 0, bytes(50 << 20)))
    refuse('bad/big.png', 'max_pixels')
    put('bad/type.png', image(2, 2, 8, 5, bytes(6)))
    refuse('bad/type.png', 'colour type')
    put('deep/a.png', encoded(ims['grey16'], 'PNG'))
    put('deep/b.png', good)
    refuse('deep', 'the bit depth differ')
    put('small.png', encoded(Image.fromarray(picture(5, 6, 3)), 'PNG'))
    put('pal.png', encoded(ims['rgb'].resize((4, 4)).quantize(5), 'PNG',
                           transparency=b'\0\x80'))


# ---- csv ----

def make_csv():
    import io
    import pandas as pd

    def read(text, dtype=np.float32, **kw):
        t = pd.read_csv(io.BytesIO(text), float_precision='round_trip', **kw)
        return [{'x': r} for r in t.to_numpy().astype(dtype)]

    dlio = rng.integers(0, 255, (9, 35), np.uint8)
    text = pd.DataFrame(dlio).to_csv(header=False, index=False).encode()
    put('dlio/a.csv', text)
    put('dlio/b.csv', text[:text.index(b'\n') + 1] * 3)
    both = [{'x': r} for r in list(dlio) + [dlio[0]] * 3]
    want('dlio', 'dlio format.dtype=uint8', both)
    want('dlio-float', 'dlio', [{'x': r['x'].astype(np.float32)}
                                for r in both])
    # numbers of all forms, including more digits than a double has
    odd = ['0', '-0', '1', '-1.5', '.5', '5.', '1e3', '1E-3', '1e22', '1e23',
           '1e-22', '1e-23', '123456789012345', '1234567890123456',
           '0.1', '0.30000000000000004', '2.2250738585072011e-308',
           '1.7976931348623157e308', '4.9e-324', '1e400', '-1e400', 'inf',
           '-inf', '9007199254740993', '0.000000000000000000000000000001',
           '179769313486231580793e289', '3.4028235677973366e+38',
           '7.0064923216240862e-46', '00012', '+7', '1e+05',
           '6.631236846766476e-316', '18446744073709551616']
    odd += ['%r' % x for x in rng.standard_normal(300) *
            10.0 ** rng.integers(-40, 40, 300)]
    odd += ['%.*g' % (n, x) for n in range(1, 20)
            for x in rng.random(10) * 10.0 ** rng.integers(-5, 25, 10)]
    values = np.array([float(x) for x in odd])
    lines = [','.join([x, odd[-1 - i]]) for i, x in enumerate(odd)]
    rows = np.stack([values, values[::-1]], 1)
    put('odd/a.csv', '\n'.join(lines).encode())
    want('odd', 'odd format.dtype=float64', [{'x': r} for r in rows])
    with np.errstate(over='ignore'):
        want('odd32', 'odd', [{'x': r.astype(np.float32)} for r in rows])
    # plain decimals of every length, more than a block per row, some of them
    # half way between two doubles or close to that
    plain = ['%s%s.%s' % (s, str(rng.integers(10**9))[:w],
                          ('%09d%09d%09d' % tuple(rng.integers(10**9, size=3))
                           )[:n])
             for s in ('', '-') for w in range(1, 10) for n in range(0, 28)
             for _ in range(3)]
    plain += ['%s%.*f' % (s, n, x) for s in ('', '-') for n in range(28)
              for x in rng.random(20) / 10.0 ** rng.integers(0, 12, 20)]
    half = [(2**53 + 2 * i + 1) * 5**k for i in range(40) for k in range(5)]
    for i, h in enumerate(half):
        for d in (-1, 0, 1):
            t = '%d' % (h + d)
            cut = len(t) - i % 5
            plain.append(t[:cut] + '.' + t[cut:])
            plain.append('0.' + t)
    rng.shuffle(plain)
    plain = plain[:len(plain) // 3 * 3]
    rows = np.array([float(x) for x in plain]).reshape(3, -1)
    lines = [','.join(r) for r in np.array(plain, object).reshape(3, -1)]
    put('plain/a.csv', '\r\n'.join(lines).encode())
    put('plain/b.csv', '\n'.join(plain).encode())
    want('plain', 'plain/a.csv format.dtype=float64',
         [{'x': r} for r in rows])
    want('plain32', 'plain/a.csv', [{'x': r.astype(np.float32)}
                                    for r in rows])
    want('plain-some', 'plain/a.csv format.columns=7,3,999 '
         'format.dtype=float64', [{'x': r[[7, 3, 999]]} for r in rows])
    want('plain-rows', 'plain/b.csv format.dtype=float64',
         [{'x': x.reshape(1)} for x in rows.ravel()])
    # header, quotes, CRLF, empty lines, blanks, BOM, no final newline
    text = (b'\xef\xbb\xbfname,"a ""b""",c\r\n1,"2",3\r\n\r\n 4 , 5,"6 "'
            b'\r\n\r\n7,8,9')
    put('headed/a.csv', text)
    three = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    want('headed', 'headed', [{'x': r} for r in three])
    want('by-name', 'headed format.columns=c,name',
         [{'x': r[[2, 0]]} for r in three])
    want('by-number', 'headed format.columns=1 format.dtype=int16',
         [{'x': r[[1]].astype(np.int16)} for r in three])
    want('header-yes', 'dlio/a.csv format.header=yes format.dtype=uint8',
         [{'x': r} for r in dlio[1:]])
    refuse('headed format.header=no', "column 0: 'name' is not a valid float32")
    refuse('headed format.columns=d', "no column 'd'")
    refuse('headed format.columns=c,2', 'twice')
    put('tab/a.csv', b'1\t2\n3\t4\n')
    want('tab', 'tab format.delimiter=tab format.dtype=int64',
         [{'x': np.array(r)} for r in ([1, 2], [3, 4])])
    put('gaps/a.csv', b'1,,3\nNA,nan,2\n,,\n')
    nan = np.nan
    want('gaps', 'gaps format.missing=nan format.dtype=float64',
         [{'x': np.array(r)} for r in ([1, nan, 3], [nan, nan, 2],
                                       [nan] * 3)])
    refuse('gaps', 'missing=nan')
    refuse('gaps format.missing=nan format.dtype=int8', 'int8 has no NaN')
    ints = ['-128', '127', '0', '-1', '3.0', '1e2']
    put('ints/a.csv', '\n'.join(ints).encode())
    want('ints', 'ints format.dtype=int8',
         [{'x': np.array([float(x)]).astype(np.int8)} for x in ints])
    big = ['18446744073709551615', '0', '9223372036854775808']
    put('big/a.csv', '\n'.join(big).encode())
    want('big', 'big format.dtype=uint64',
         [{'x': np.array([int(x)], np.uint64)} for x in big])
    refuse('big format.dtype=int64',
           "'18446744073709551615' is not a valid int64")
    for bad, dtype in [('128', 'int8'), ('-1', 'uint8'), ('1.5', 'int32'),
                       ('0x10', 'float32'), ('1e', 'float32'),
                       ('1.2.3', 'float32'), ('18446744073709551616',
                                              'uint64'), ('--1', 'float32'),
                       ('.', 'float64'), ('1 2', 'float32')]:
        name = 'bad/%s.csv' % bad.replace(' ', '_')
        put(name, ('1\n%s\n' % bad).encode())
        refuse(name + ' format.dtype=' + dtype,
               "'%s' is not a valid %s" % (bad, dtype))
    # many rows of different lengths: runs, and quotes across pieces
    many = rng.integers(-10**6, 10**6, (60000, 3)).astype(np.int32)
    many //= 10 ** (np.arange(60000)[:, None] % 6)
    text = ''.join('%d,"%d",%d\n' % tuple(r) for r in many)
    put('many/a.csv', text.encode())
    want('many', 'many format.dtype=int32', [{'x': r} for r in many])
    text = ''.join('%d,%d,%d%s' % (*r, '\n\r\n' if r[0] % 7 == 0 else '\r\n')
                   for r in many)
    put('lines/a.csv', text.encode())
    want('lines', 'lines format.dtype=int32', [{'x': r} for r in many])
    wide = rng.integers(0, 9, (3, 90000)).astype(np.uint8)
    put('wide/a.csv', pd.DataFrame(wide).to_csv(header=False,
                                                index=False).encode())
    want('wide', 'wide format.dtype=uint8', [{'x': r} for r in wide])
    # to be rejected
    put('bad/nul.csv', b'1,2\n3,\0\n')
    refuse('bad/nul.csv', 'line 2: NUL byte')
    put('bad/names.csv', b'label,"width"\n1,2\n')
    refuse('bad/names.csv format.columns=lable', "did you mean 'label'?")
    refuse('bad/names.csv format.columns=widt', "did you mean 'width'?")
    refuse('bad/names.csv format.columns=height', "there is no column 'height'")
    put('bad/ragged.csv', b'1,2\n\n3,4,5\n')
    refuse('bad/ragged.csv', 'line 3: 3 values')
    put('bad/quote.csv', b'1,2\n"3,4\n5,6\n')
    refuse('bad/quote.csv', 'line 2: a quoted value')
    put('cols/a.csv', b'1,2\n')
    put('cols/b.csv', b'1,2,3\n4,5,6\n')
    put('cols/c.csv', b'')
    put('cols/d.csv', b'7\n')
    refuse('cols', 'format.ragged=true')
    refuse('cols format.ragged=true format.columns=0', 'one length')
    want('ragged', 'cols format.ragged=true',
         [{'x': np.array(r, np.float32)}
          for r in ([1, 2], [1, 2, 3], [4, 5, 6], [7])])
    put('bad/empty.csv', b'\n\n')
    refuse('bad/empty.csv', 'no samples')
    put('small.csv', b'a,b\n1,-2.5\r\n"3",4e1\n\n5,6')


def make_synthetic():
    for i in range(5):
        put('s/img_%d_of_5.synthetic' % i, b'%d' % i)
    one = {'x': np.full((2, 3), 0x4141, np.uint16)}
    want('s', 's format.shape=2x3 format.dtype=uint16 format.fill=65',
         [one] * 5)
    want('many', 's format.samples=3', [{'x': np.zeros(1, np.uint8)}] * 15)
    refuse('s format.shape=0', 'is not valid')
    refuse('s format.dtype=nothing', 'unknown dtype')
    put('small.synthetic', b'7')


# ---- decoded values, in every format ----

values = []  # (decoder, bytes), for the fuzzer


def records(name, rows):
    put(name + '/a.tfrecord', b''.join(frame(example(r)) for r in rows[:5]))
    if rows[5:]:
        put(name + '/b.tfrecord',
            b''.join(frame(example(r)) for r in rows[5:]))


def saved(a):
    import io
    b = io.BytesIO()
    np.save(b, a)
    return b.getvalue()


def decode_case(case, how, column, also=''):
    """A feature v of these (bytes, array), and a number."""
    records(case, [{'v': b, 'n': np.int64(i)}
                   for i, (b, _) in enumerate(column)])
    values.extend((how.split(':')[0], b) for b, _ in column)
    want(case, '%s decode.v=%s%s' % (case, how, also),
         [{'v': a, 'n': np.int64(i)} for i, (_, a) in enumerate(column)])


def decode_images():
    from PIL import Image

    def image(kind, h, w, c, **kw):
        b = encoded(Image.fromarray(picture(h, w, c)), kind, **kw)
        return b, pixels(b)

    sizes = [(8, 8), (33, 7), (7, 100), (1, 1), (64, 48), (5, 9), (20, 30)]
    for kind in 'jpeg', 'png':
        decode_case(kind + '-equal', kind,
                    [image(kind, 17, 23, 3) for _ in range(7)])
        decode_case(kind + '-sizes', kind,
                    [image(kind, h, w, 3) for h, w in sizes])
        decode_case(kind + '-grey', 'image/' + kind,
                    [image(kind, h, w, 1) for h, w in sizes])
        values.extend((kind, image(kind, h, w, 3)[0]) for h, w in sizes)
    both = [image('jpeg', 9, 9, 3), image('png', 9, 9, 3),
            image('png', 4, 5, 3)]
    decode_case('told', 'auto', both)
    decode_case('cast', 'jpeg', [image('jpeg', 17, 23, 3)] * 6,
                ' take=17x23x3')
    rgba = [(b, np.dstack([a, np.full(a.shape[:2], 255, np.uint8)]))
            for b, a in both[:1]]
    decode_case('alpha', 'jpeg:color=rgba', rgba)
    # files: mixed, by content, and undecoded
    put('beside/a.jpg', both[0][0])
    put('beside/b.png', both[1][0])
    put('beside/c.png', both[2][0])
    want('beside', 'beside', [{'x': a} for _, a in both])
    want('beside-files', 'beside format=files decode.x=auto',
         [{'x': a} for _, a in both])
    want('beside-bytes', 'beside format=files', [{'x': u8(b)} for b, _ in both])
    want('one-kind', 'beside format=png', [{'x': a} for _, a in both[1:]])
    want('as-bytes', 'beside format=jpeg decode.x=none',
         [{'x': u8(both[0][0])}])
    four = Image.fromarray(picture(9, 9, 4))
    put('beside4/a.jpg', both[0][0])
    put('beside4/b.png', encoded(four, 'PNG'))
    want('beside4', 'beside4', [{'x': rgba[0][1]}, {'x': np.array(four)}])
    deep = Image.fromarray((picture(9, 9, 1) * 200).astype(np.uint16))
    put('deep/a.jpg', both[0][0])
    put('deep/b.png', encoded(deep, 'PNG'))
    refuse('deep', 'the bit depth differ')
    good, bad = both[0][0], both[0][0][:-40]
    records('hurt', [{'v': b} for b in (good, bad, b'', good, b'hello')])
    refuse('hurt decode.v=jpeg', "sample 1, field 'v': damaged")
    refuse('hurt decode.v=png', "not a PNG file: it starts with '\\xff")
    records('late', [{'v': b} for b in (b'hello', good)])
    refuse('late decode.v=jpeg', "not a JPEG file: it starts with "
           "'hello'")
    records('none', [{'n': np.int64(0)}, {'n': np.int64(0), 'v': good}])
    refuse('none decode.v=jpeg', "sample 0, field 'v': the value is empty")
    refuse('jpeg-sizes decode.v=jpeg:max_pixels=9',
           'decode.v=jpeg:max_pixels=9')
    refuse('beside decode.x=jpeg format.color=rgb', 'format.color')


def make_decode():
    decode_images()
    arrays = [rng.random((3, 4)).astype(np.float32) for _ in range(6)]
    decode_case('npy', 'npy', [(saved(a), a) for a in arrays])
    arrays = [rng.integers(0, 99, (i, 3)).astype(np.int16) for i in range(7)]
    other = [np.asfortranarray(a) if i % 2 else a.astype('>i2')
             for i, a in enumerate(arrays)]
    decode_case('npy-order', 'npy',
                list(zip(map(saved, other), arrays)))
    decode_case('npy-scalar', 'npy', [(saved(np.float64(i)), np.float64(i))
                                      for i in range(3)])
    decode_case('auto-npy', 'auto', [(saved(a), a) for a in arrays])
    put('npys/a.bin', saved(arrays[3]))
    put('npys/b.bin', saved(arrays[5]))
    want('npys', 'npys format=files decode.x=npy',
         [{'x': arrays[3]}, {'x': arrays[5]}])
    words = ['', 'a', 'h\u00e9llo', '\u65e5\u672c', '\U0001f600' * 9, 'x' * 99]
    decode_case('text', 'text', [(w.encode(), u8(w.encode())) for w in words])
    decode_case('text-plain', 'text/plain',
                [(w.encode(), u8(w.encode())) for w in ['abc', 'def']])
    numbers = [0, -1, 7, 2**63 - 1, -2**63, 12345]
    decode_case('int', 'int', [((' %d\n' % v).encode(), np.int64(v))
                               for v in numbers])
    docs = [b'{"n": %d, "t": "%s", "f": [1, {"t": 2}]}' % (i, b't' * i)
            for i in range(6)]
    docs.append(b'{"t":"\\u00e9\\n", "n": -9007199254740992 }')
    texts = [b't' * i for i in range(6)] + ['\u00e9\n'.encode()]
    decode_case('json-text', 'json:t', list(zip(docs, map(u8, texts))))
    ints = list(range(6)) + [-2**53]
    decode_case('json-int', 'json:n,type=int',
                list(zip(docs, map(np.int64, ints))))
    decode_case('json-float', 'json:key=n,type=float',
                list(zip(docs, map(np.float64, ints))))
    raws = [rng.random((2, 3)).astype(np.float32) for _ in range(6)]
    decode_case('raw', 'raw:float32,shape=2x3', [(a.tobytes(), a)
                                                 for a in raws])
    decode_case('raw-flat', 'raw:dtype=float64,big_endian=true',
                [(np.arange(i).astype('>f8').tobytes(),
                  np.arange(i).astype(np.float64)) for i in range(5)])
    # fields of bytes in other formats
    x = np.stack([u8(a.tobytes()) for a in raws])
    put('npy.npy', saved(x))
    want('in-npy', 'npy.npy decode.x=raw:float32,shape=2x3 '
         'format.samples=first', [{'x': a} for a in raws])
    np.savez_compressed(os.path.join(out, 'z.npz'), x=x, y=np.arange(6))
    want('in-npz', 'z.npz decode.x=raw:float32,shape=2x3 '
         'format.samples=first',
         [{'x': a, 'y': np.int64(i)} for i, a in enumerate(raws)])
    whole = [example({'v': b'%d' % i}) for i in range(4)]
    put('whole/a.tfrecord', b''.join(map(frame, whole)))
    want('in-bytes', 'whole format.decode=false decode.bytes=none',
         [{'bytes': u8(b)} for b in whole])
    # one npz per sample, with members that contain files
    from PIL import Image
    for how, save in ('stored', np.savez), ('packed', np.savez_compressed):
        os.makedirs(os.path.join(out, how))
        want_all = []
        for i in range(4):
            b = encoded(Image.fromarray(picture(9 + i, 12, 3)), 'PNG')
            save(os.path.join(out, how, '%d.npz' % i), im=u8(b),
                 a=u8(saved(arrays[i])), n=np.int64(i))
            want_all.append({'im': pixels(b), 'a': arrays[i],
                             'n': np.int64(i)})
        want('npz-' + how, how + ' decode.im=png decode.a=npy', want_all)
        refuse(how + ' decode.im=jpeg', 'not a JPEG file')
    # rejected by decoders
    refuse('text decode.v=jepg', "did you mean 'jpeg'?")
    refuse('text decode.w=text', "no field 'w'")
    refuse('text decode.n=text', 'only bytes')
    refuse('text decode.v=json', 'no member given')
    refuse('text decode.v=json:t', 'is empty')
    refuse('text decode.v=int', "not a 64-bit integer: ''")
    refuse('text decode.v=raw:float32', 'float32 needs')
    refuse('text decode.v=raw:float31', 'float31')
    refuse('text decode.v=text:a=b', '')
    refuse('text decode.v=jpeg:colour=rgb', 'color')
    refuse('text decode.v=text decode=false', 'omit one of them')
    refuse('json-text decode.v=json:n', "'n' is not text")
    refuse('json-text decode.v=json:t,type=int', "'t' is not a number")
    refuse('json-text decode.v=json:q', "no member 'q'")
    refuse('z.npz decode.x=jpeg format.samples=first', 'does not provide')
    records('latin', [{'v': b'abc'}, {'v': b'h\xe9llo'}, {'v': b'\xe2\x82'}])
    refuse('latin decode.v=text', 'not UTF-8: invalid bytes at offset 1')
    for i, v in enumerate([b'1.5', b'9223372036854775808', b'1 2', b'-']):
        records('notint%d' % i, [{'v': v}])
        refuse('notint%d decode.v=int' % i, 'not a 64-bit integer')
    records('two', [{'v': saved(np.zeros(2))}, {'v': saved(np.zeros((2, 2)))}])
    refuse('two decode.v=npy', 'the number of axes differs')
    records('types', [{'v': saved(np.zeros(2))},
                      {'v': saved(np.zeros(2, np.float32))}])
    refuse('types decode.v=npy', 'the data type differs')
    records('tail', [{'v': saved(np.zeros(2)) + b'x'}])
    refuse('tail decode.v=npy', '1 bytes follow the array')
    records('small', [{'v': values[0][1]}, {'v': values[1][1]}])
    records('small-npy', [{'v': saved(arrays[1])}, {'v': saved(arrays[2])}])


MAKE = {name[5:]: f for name, f in list(globals().items())
        if name.startswith('make_')}


def main():
    global out
    out = sys.argv[2]
    os.makedirs(out, exist_ok=True)
    MAKE[sys.argv[1]]()
    for name, lines in [('manifest', manifest), ('refused', refused)]:
        put(name, ''.join(x + '\n' for x in lines).encode())


if __name__ == '__main__':
    main()
