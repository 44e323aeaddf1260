/*
 * gen: what the name of PATH says about the file, and what a loader has to be
 * told about what was made. A name with the suffix of a format makes one file
 * of it; that of a format which is known and not written is refused, because a
 * directory under such a name would deceive; all others are directories.
 */
#include <string.h>

#include "cli/gen.h"
#include "make/synth.h"

/* Suffixes of files that others have, and that are not written here; the last
 * ones are, where the libraries for them were there when it was built. */
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
		return pen__fail(err, PEN_EINVAL, g->path,
				 "%s files are not written here; `penstock "
				 "formats` lists those that are, and with "
				 "format= a directory is made under any name",
				 suffix);
	if (by_name && strcmp(by_name, format) != 0 &&
	    !pen__format_names(format, g->path))
		return pen__fail(err, PEN_EINVAL, g->path,
				 "is the name of a %s file, and format=%s: "
				 "name it otherwise, or leave format= out",
				 by_name, format);
	if (by_name && g->files > 1)
		return pen__fail(err, PEN_EINVAL, g->path,
				 "is the name of one %s file, and files=%llu: "
				 "name a directory, and give format=%s",
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

/* What files do not tell, and a loader would guess otherwise. */
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

void gen_print_hint(const struct gen *g)
{
	if (g->hint[0])
		printf("; load it with %s", g->hint);
	puts("");
}
