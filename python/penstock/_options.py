"""Turn keyword arguments into settings of the engine.

The library itself lists the names, and which implementation has which option.
"""
import os
import warnings

from . import _penstock
from ._penstock import SettingError

KINDS = ("format", "store", "sampler")
# Settings that accept arrays, which are passed to the engine as files.
ARRAYS = ("subset", "weights", "labels", "lengths")


def refused(code, text):
    """A SettingError of another kind than P002."""
    error = SettingError(text)
    error.code = code
    return error


def paths_of(path):
    """One or more paths as a list of str."""
    if isinstance(path, (str, bytes, os.PathLike)):
        path = [path]
    if isinstance(path, (set, frozenset)):
        raise TypeError("a set of paths has no order, and the order of paths "
                        "is the order of samples; pass a list")
    try:
        return [os.fsdecode(p) for p in path]
    except TypeError:
        raise TypeError(f"path must be a path or a list of paths, not {path!r}") \
            from None


def warn(engine):
    """Report doubtful data as Python warnings."""
    for where, what in engine.warnings()[:10]:
        warnings.warn(f"penstock: {where}: {what}", stacklevel=3)


def text_of(value):
    """A value as written on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, slice):
        parts = [value.start, value.stop]
        if value.step is not None:
            parts.append(value.step)
        return ":".join("" if p is None else str(int(p)) for p in parts)
    if isinstance(value, (list, tuple)):
        numbers = all(isinstance(v, int) for v in value)
        return ("x" if numbers else ",").join(text_of(v) for v in value)
    if hasattr(value, "name") and not hasattr(value, "__float__"):
        return str(value.name)  # numpy.dtype
    if isinstance(value, type):
        return value.__name__  # numpy.float32
    text = str(value)
    return text[6:] if text.startswith("torch.") else text


def cache_dir():
    home = os.environ.get("XDG_CACHE_HOME") or \
        os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "penstock", "lists")


def keep_file(data, suffix):
    """Write bytes to a file named by its content, so that the same list is the
    same setting next time, and a saved state still fits."""
    import hashlib
    import tempfile
    name = hashlib.sha256(data).hexdigest()[:32] + suffix
    where = cache_dir()
    try:
        os.makedirs(where, exist_ok=True)
    except OSError:
        where = tempfile.mkdtemp(prefix="penstock-")
    path = os.path.join(where, name)
    if os.path.exists(path):
        return path
    fd, temporary = tempfile.mkstemp(dir=where)
    with os.fdopen(fd, "wb") as f:
        f.write(data)
    os.replace(temporary, path)
    return path


def array_file(value):
    """An array of numbers or booleans as an .npy file."""
    import io
    import numpy
    a = numpy.asarray(value)
    if a.ndim != 1 or a.dtype.kind not in "biuf":
        raise SettingError("expected a list of numbers or booleans, not "
                           f"{a.ndim} axes of {a.dtype}")
    out = io.BytesIO()
    numpy.save(out, numpy.ascontiguousarray(a))
    return keep_file(out.getvalue(), ".npy")


def lines_file(names):
    """Names, one per line, as an @list."""
    return "@" + keep_file("".join(f"{n}\n" for n in names).encode(), ".txt")


def first_of(path):
    """The first path of an @list or of a glob, or the path itself."""
    if path.startswith("@"):
        try:
            with open(path[1:], "rb") as f:
                names = [n for n in map(bytes.strip, f) if n]
        except OSError:
            return path  # the engine reports it
        return os.path.join(os.path.dirname(path[1:]),
                            os.fsdecode(names[0])) if names else path
    if any(c in path for c in "*?[") and not os.path.exists(path):
        import glob
        return next(iter(sorted(glob.glob(path))), path)
    return path


def format_of(path):
    """The format by file name; None if only the engine can determine it."""
    path = first_of(first_of(path))
    path = path.rstrip("/") or "/"
    found = _penstock.format_for(path)
    if found or not os.path.isdir(path):
        return found
    for where, dirs, names in os.walk(path):
        dirs.sort()
        for name in sorted(dirs) + sorted(names):
            found = _penstock.format_for(os.path.join(where, name))
            if found:
                return found
    return None


def _sampler_of(settings):
    sampler = settings.get("sampler")
    if sampler:
        return text_of(sampler)
    shuffle = settings.get("shuffle")
    if shuffle is True:
        return "shuffle"
    if not shuffle:
        return "sequential"
    return text_of(shuffle)


def _reads(options):
    """The options that matter for reading."""
    return {k for k, (_, about) in options.items()
            if not about.startswith("writing")}


def chosen(paths, settings):
    """{kind: (name, options)} that the settings select."""
    out = {}
    for kind in KINDS:
        name = settings.get(kind)
        if kind == "sampler":
            name = _sampler_of(settings)
        elif kind == "format" and not name and paths:
            name = format_of(paths[0])
        name = text_of(name) if name else None
        out[kind] = (name, _reads(_penstock.options(kind, name))
                     if name else set())
    return out


def _unknown(key, known, have):
    import difflib
    every = sorted(known.union(*(options for _, options in have.values())))
    for kind in KINDS:
        for name in _penstock.names(kind):
            if key in _reads(_penstock.options(kind, name)):
                chosen_name = have[kind][0]
                return (f"'{key}' is an option of {kind} '{name}', but the "
                        f"{kind} is {chosen_name or 'not known'} here" +
                        ("" if chosen_name else f"; set {kind}="))
    near = difflib.get_close_matches(key, every, 1)
    if near:
        return f"unknown setting '{key}'; did you mean '{near[0]}'?"
    return f"unknown setting '{key}'"


def route(key, known, have):
    """The setting of a keyword: 'batch_size', 'format.output', ..."""
    if key == "dtype":
        return "format.dtype" if "dtype" in have["format"][1] else "cast"
    if key in known:
        return key
    for kind in (*KINDS, "cache", "decode", "image"):  # sampler_chunk= or "sampler.chunk"
        if key.startswith((kind + "_", kind + ".")):
            return f"{kind}.{key[len(kind) + 1:]}"
    homes = [kind for kind in KINDS if key in have[kind][1]]
    if len(homes) > 1:
        raise SettingError(f"'{key}' is an option of both " + " and ".join(
            f"{kind} '{have[kind][0]}'" for kind in homes) +
            f"; write {homes[0]}_{key}= or {homes[1]}_{key}=")
    if not homes:
        raise refused("P001", _unknown(key, known, have))
    return f"{homes[0]}.{key}"


def settle(paths, settings):
    """[(key, text)] for the engine."""
    known = set(_penstock.options("loader", None))
    settings = {k: v for k, v in settings.items() if v is not None}
    if isinstance(settings.get("decode"), dict):
        for field, how in settings.pop("decode").items():
            settings["decode." + field] = "none" if how is None else how
    for kind in ("options", "format_opts", "store_opts", "sampler_opts",
                 "cache_opts"):
        prefix = "" if kind == "options" else kind[:-4]
        for k, v in (settings.pop(kind, None) or {}).items():
            settings[prefix + k] = v
    have = None
    out = []
    for key, value in settings.items():
        if key in ARRAYS and not isinstance(
                value, (str, bytes, os.PathLike, slice)):
            value = array_file(value)
        if key == "fields" and isinstance(value, str):
            value = [value]
        if key not in known or key == "dtype":
            if have is None:
                have = chosen(paths, settings)
            key = route(key, known, have)
        out.append((key, text_of(value)))
    return out
