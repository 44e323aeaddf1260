/*
 * gen: derives the file type from PATH, and the settings a loader needs for the
 * result. A PATH with the suffix of a format is one file; the suffix of a
 * format that cannot be written is refused, because a directory of that name
 * would be misleading; any other PATH is a directory.
 */
#include <string.h>

#include "cli/gen.h"
#include "make/synth.h"

/* Well-known suffixes that cannot be written here. The last ones can if their
 * libraries were found at build time. */
static const char *const foreign[] = {
	".tar",	  ".tgz",     ".zip",	".gz",		 ".bgz",
	".zst",	  ".bz2",     ".xz",	".7z",		 ".parquet",
	".arrow", ".feather", ".ipc",	".orc",		 ".avro",
	".lmdb",  ".mdb",     ".mds",	".db",		 ".sqlite",
	".pt",	  ".pth",     ".pkl",	".ckpt",	 ".safetensors",
	".onnx",  ".mat",     ".nc",	".loom",	 ".mtx",
	".rds",	  ".webp",    ".gif",	".bmp",		 ".tif",
	".tiff",  ".exr",     ".dcm",	".nii",		 ".wav",
	".flac",  ".mp3",     ".mp4",	".avi",		 ".txt",
	".tsv",	  ".json",    ".jsonl", ".yaml",	 ".xml",
	".md",	  ".bed",     ".sam",	".bam",		 ".cram",
	".vcf",	  ".gff",     ".gtf",	".array_record", ".bagz",
	".ffcv",  ".beton",   ".idx",	".rec",		 ".h5",
	".hdf5",  ".he5",     ".h5ad",	".jpg",		 ".jpeg",
	".png",	  NULL,
};

static const char *foreign_suffix(const char *path)
{
	const size_t n = strlen(path);

	for (const char *const *s = foreign; *s; s++)
		if (n > strlen(*s) && !strcmp(path + n - strlen(*s), *s))
			return *s;
	return NULL;
}

int gen_check_name(const struct gen *g, const char *format, struct pen_err *err)
{
	const char *by_name = pen_format_for(g->path);
	const char *suffix = foreign_suffix(g->path);

	if (!by_name && suffix && !g->format)
		return pen__fail(
			err, P_CANNOT_WRITE_THIS, g->path,
			"cannot write %s files; see `penstock formats`, or set "
			"format= to make a directory of any name",
			suffix);
	if (by_name && strcmp(by_name, format) != 0 &&
	    !pen__format_names(format, g->path))
		return pen__fail(err, P_CONFLICT, g->path,
				 "the suffix means %s, but format=%s; change "
				 "the suffix or omit format=",
				 by_name, format);
	if (by_name && g->files > 1)
		return pen__fail(err, P_CONFLICT, g->path,
				 "is the name of one %s file, but files=%llu; "
				 "name a directory and set format=%s",
				 by_name, (unsigned long long)g->files, format);
	return 0;
}

static void add(struct gen *g, const char *setting, const char *value)
{
	const size_t n = strlen(g->hint);

	snprintf(g->hint + n, sizeof(g->hint) - n, "%s%s%s", n ? " " : "",
		 setting, value);
}

static void hint_shape(struct gen *g)
{
	char shape[160] = "1";
	size_t n = 0;

	for (uint32_t i = 0; i < g->field[0].ndim && n < sizeof(shape); i++)
		n += (size_t)snprintf(shape + n, sizeof(shape) - n, "%s%lld",
				      i ? "x" : "",
				      (long long)g->field[0].shape[i]);
	add(g, "format.dtype=", g->dtype);
	add(g, "format.shape=", shape);
}

/* Settings that the files do not reveal and a loader would guess wrong. */
void gen_settle_hint(struct gen *g)
{
	const char *f = g->made;
	char n[24];

	if (!strcmp(f, "npy") || !strcmp(f, "npz")) {
		if (g->files > 1 && g->samples > 1)
			add(g, "format.samples=", "first");
		if (g->files == 1 && g->samples == 1)
			add(g, "format.samples=", "file");
	} else if (!strcmp(f, "raw") || strstr(f, "indexed_binary")) {
		hint_shape(g);
	} else if (!strcmp(f, "synthetic")) {
		hint_shape(g);
		snprintf(n, sizeof(n), "%llu", (unsigned long long)g->samples);
		if (g->samples > 1)
			add(g, "format.samples=", n);
	} else if (!strcmp(f, "csv") && strcmp(g->dtype, "float32") != 0) {
		add(g, "format.dtype=", g->dtype);
	}
}
