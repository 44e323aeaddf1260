/*
 * Generated data sets: other programs can read them, they do not depend on how
 * they are generated, and interrupted runs can be continued.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "emulate/datafile.h"
#include "emulate/generate.h"

static char dir[64]; /* parent of all files */

/* ---- ranks, called in turn ---- */

static int reduce(struct pen_comm *c, double *v, size_t n, enum pen_reduce how,
		  struct pen_err *err)
{
	(void)c;
	(void)v;
	(void)n;
	(void)how;
	(void)err;
	return 0;
}

static const struct pen_comm_ops ops = { .name = "self", .reduce = reduce };

/* ---- data sets ---- */

struct set {
	char root[128], format[24], type[16], prefix[16];
	int64_t dims[8], chunk[8], most[8];
	struct pen_config c;
};

/* name: below dir; the data folder */
static struct set *set(struct set *s, const char *name, const char *format)
{
	*s = (struct set){ .type = "uint8", .prefix = "img" };
	snprintf(s->root, sizeof(s->root), "%s/%s", dir, name);
	snprintf(s->format, sizeof(s->format), "%s", format);
	s->c.dataset.format = s->format;
	s->c.dataset.num_files_train = 3;
	s->c.dataset.num_samples_per_file = 1;
	s->c.dataset.record_length = 4096;
	s->c.dataset.record_element_type = s->type;
	s->c.dataset.hdf5_num_dset = 1;
	s->c.dataset.data_folder = s->root;
	s->c.dataset.file_prefix = s->prefix;
	s->c.dataset.compression_level = 4;
	s->c.dataset.record_dims.v = s->dims;
	s->c.dataset.hdf5_chunk_dims.v = s->chunk;
	s->c.dataset.hdf5_max_shape.v = s->most;
	return s;
}

static void dims(struct set *s, size_t n, const int64_t *v)
{
	s->c.dataset.record_dims.n = n;
	memcpy(s->dims, v, n * sizeof(*v));
}

static int make_as(const struct set *s, int rank, int size, unsigned threads,
		   struct pen_generate *g, struct pen_err *err)
{
	struct pen_comm comm = { .ops = &ops,
				 .rank = rank,
				 .size = size,
				 .nnodes = 1,
				 .local_rank = rank,
				 .local_size = size };

	g->c = &s->c;
	g->comm = &comm;
	g->threads = threads;
	return pen__generate(g, err);
}

/* With one rank and two threads; reports failures. */
static void make(const struct set *s, struct pen_generate *out)
{
	struct pen_generate g = { 0 };
	struct pen_err err = { 0 };

	if (!CHECK_EQ(make_as(s, 0, 1, 2, &g, &err), 0))
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
	CHECK_EQ(g.files_done, g.files_total);
	if (out) {
		atomic_store(&out->files_kept, g.files_kept);
		atomic_store(&out->bytes_done, g.bytes_done);
		atomic_store(&out->bytes_total, g.bytes_total);
	}
}

static uint64_t kept(const struct set *s)
{
	struct pen_generate g = { 0 };

	make(s, &g);
	return g.files_kept;
}

static void path_of(const struct set *s, uint64_t i, char *buf)
{
	struct pen_data_layout l;

	CHECK_EQ(pen__layout_init(&l, &s->c, NULL), 0);
	pen__layout_path(&l, i, buf, PEN_LAYOUT_PATH);
	pen__layout_fini(&l);
}

static int unlink_one(const char *path, const struct stat *sb, int kind,
		      struct FTW *at)
{
	(void)sb;
	(void)kind;
	(void)at;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool alike(const struct set *a, const struct set *b)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "diff -rq %s %s >/dev/null", a->root,
		 b->root);
	return system(cmd) == 0;
}

/* ---- read by other programs ---- */

static void put_list(FILE *f, const char *key, const struct pen_opt_list *v)
{
	fprintf(f, "\"%s\": [", key);
	for (size_t i = 0; i < v->n; i++)
		fprintf(f, "%s%lld", i ? ", " : "", (long long)v->v[i]);
	fprintf(f, "], ");
}

/* Generates a data set, and adds it to the list that Python checks. */
static void made(FILE *f, const struct set *s, const char *packed, bool share)
{
	const struct pen_config *c = &s->c;

	make(s, NULL);
	fprintf(f,
		"{\"root\": \"%s\", \"format\": \"%s\", \"prefix\": \"%s\", ",
		s->root, s->format, s->prefix);
	fprintf(f, "\"train\": %d, \"eval\": %d, ",
		(int)c->dataset.num_files_train,
		(int)c->dataset.num_files_eval);
	fprintf(f, "\"sub_train\": %d, \"sub_eval\": %d, ",
		(int)c->dataset.num_subfolders_train,
		(int)c->dataset.num_subfolders_eval);
	fprintf(f, "\"samples\": %d, \"length\": %.17g, \"stdev\": %.17g, ",
		(int)c->dataset.num_samples_per_file, c->dataset.record_length,
		c->dataset.record_length_stdev);
	put_list(f, "dims", &c->dataset.record_dims);
	put_list(f, "chunk", &c->dataset.hdf5_chunk_dims);
	put_list(f, "maxshape", &c->dataset.hdf5_max_shape);
	fprintf(f, "\"parts\": %d, \"dtype\": \"%s\", ",
		(int)c->dataset.hdf5_num_dset, s->type);
	fprintf(f, packed ? "\"packed\": \"%s\", " : "\"packed\": null, ",
		packed);
	if (share)
		fprintf(f, "\"share\": %.17g}\n", c->dataset.compressibility);
	else
		fprintf(f, "\"share\": null}\n");
	/* all files are recognised */
	CHECK_EQ(kept(s),
		 c->dataset.num_files_train + c->dataset.num_files_eval);
}

static void each_format(FILE *f)
{
	static const char *const names[] = { "npy",
					     "npz",
					     "hdf5",
					     "tfrecord",
					     "csv",
					     "jpeg",
					     "png",
					     "indexed_binary",
					     "mmap_indexed_binary",
					     "synthetic" };
	static const char *const types[] = { "float32", "int8", "float16",
					     "int64" };
	struct set s;
	char name[64];

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const bool image = i == 5 || i == 6;

		/* varying sizes, in subfolders */
		snprintf(name, sizeof(name), "v-%s", names[i]);
		set(&s, name, names[i]);
		s.c.dataset.num_files_train = 11;
		s.c.dataset.num_files_eval = 3;
		s.c.dataset.num_subfolders_train = 3;
		s.c.dataset.record_length_stdev = 1000;
		made(f, &s, NULL, false);
		/* several samples of any shape and type */
		for (unsigned k = 0; k < 4; k++) {
			snprintf(name, sizeof(name), "d-%s-%u", names[i], k);
			set(&s, name, names[i]);
			dims(&s, image ? 2 : k + 1,
			     (int64_t[]){ k == 2 ? 1 : 6, 5, 4, 3 });
			if (!image)
				snprintf(s.type, sizeof(s.type), "%s",
					 types[k]);
			s.c.dataset.num_samples_per_file = image ? 1 : k + 1;
			made(f, &s, NULL, false);
		}
	}
}

static void hdf5_settings(FILE *f)
{
	struct set s;

	set(&s, "parts", "hdf5");
	dims(&s, 3, (int64_t[]){ 6, 5, 4 });
	s.c.dataset.hdf5_num_dset = 3;
	s.c.dataset.num_samples_per_file = 2;
	made(f, &s, NULL, false);
	set(&s, "ones", "hdf5"); /* parts of length one */
	dims(&s, 3, (int64_t[]){ 3, 5, 4 });
	s.c.dataset.hdf5_num_dset = 3;
	made(f, &s, NULL, false);
	set(&s, "dots", "hdf5"); /* scalar parts */
	dims(&s, 1, (int64_t[]){ 3 });
	s.c.dataset.hdf5_num_dset = 3;
	s.c.dataset.num_samples_per_file = 40;
	made(f, &s, NULL, false);
	set(&s, "chunks", "hdf5");
	s.c.dataset.hdf5_chunk_dims.n = 3;
	memcpy(s.chunk, (int64_t[]){ 1, 32, 16 }, 24);
	made(f, &s, NULL, false);
	s.c.dataset.compression = PEN_COMPRESS_GZIP;
	snprintf(s.root, sizeof(s.root), "%s/gzip", dir);
	s.c.dataset.compressibility = 0.5;
	made(f, &s, "gzip", false);
	s.c.dataset.compression = PEN_COMPRESS_LZF;
	snprintf(s.root, sizeof(s.root), "%s/lzf", dir);
	made(f, &s, "lzf", false);
	set(&s, "grows", "hdf5");
	s.c.dataset.hdf5_max_shape.n = 2;
	memcpy(s.most, (int64_t[]){ 100, 64 }, 16);
	made(f, &s, NULL, false);
	set(&s, "zip", "npz");
	s.c.dataset.compression = PEN_COMPRESS_ZIP;
	s.c.dataset.num_samples_per_file = 3;
	made(f, &s, "zip", false);
}

/* The size after compression with zlib. */
static void content(FILE *f)
{
	static const char *const types[] = { "uint8",	  "int16",
					     "int64",	  "float16",
					     "float32",	  "float64",
					     "complex64", "complex128" };
	static const double shares[] = { 0.1, 0.3, 0.5, 0.75, 0.9 };
	struct set s;
	char name[64];

	for (unsigned i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "noise-%u", i);
		set(&s, name, "npy");
		snprintf(s.type, sizeof(s.type), "%s", types[i]);
		s.c.dataset.record_length = 200000;
		made(f, &s, NULL, true);
	}
	for (unsigned i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "share-%u", i);
		set(&s, name, i & 1 ? "npz" : "indexed_binary");
		snprintf(s.type, sizeof(s.type), "%s", types[i & 1 ? 4 : 0]);
		s.c.dataset.record_length = 200000;
		s.c.dataset.num_samples_per_file = 2;
		s.c.dataset.compressibility = shares[i];
		made(f, &s, NULL, true);
	}
}

static void others_read(void)
{
	char cmd[1024], list[128];
	const char *source = getenv("SOURCE");
	char here[512] = __FILE__;
	FILE *f;

	snprintf(list, sizeof(list), "%s/sets.json", dir);
	f = fopen(list, "w");
	if (!CHECK(f))
		return;
	each_format(f);
	hdf5_settings(f);
	content(f);
	fclose(f);
	if (source)
		snprintf(here, sizeof(here), "%s/tests", source);
	else
		*strrchr(here, '/') = '\0';
	snprintf(cmd, sizeof(cmd), PYTHON " %s/data/check_generated.py %s",
		 here, list);
	if (!test_python_has("numpy, h5py, PIL, pandas"))
		printf("not checked with NumPy and others: not installed\n");
	else
		CHECK_EQ(system(cmd), 0);
}

/* ---- independent of ranks and threads ---- */

static void same(const char *format)
{
	struct set a, b, d;
	struct pen_generate g = { 0 };
	char name[64];

	snprintf(name, sizeof(name), "one-%s", format);
	set(&a, name, format);
	snprintf(name, sizeof(name), "two-%s", format);
	set(&b, name, format);
	snprintf(name, sizeof(name), "seed-%s", format);
	set(&d, name, format);
	a.c.dataset.num_files_train = b.c.dataset.num_files_train = 7;
	a.c.dataset.num_files_eval = b.c.dataset.num_files_eval = 2;
	a.c.dataset.compressibility = b.c.dataset.compressibility = 0.2;
	a.c.dataset.num_samples_per_file = 3;
	b.c.dataset.num_samples_per_file = 3;
	CHECK_EQ(make_as(&a, 0, 1, 1, &g, NULL), 0);
	CHECK_EQ(g.files_done, 9);
	CHECK_EQ(make_as(&b, 0, 2, 3, &g, NULL), 0);
	CHECK_EQ(g.files_total, 5);
	CHECK_EQ(g.files_done, 5);
	CHECK_EQ(make_as(&b, 1, 2, 2, &g, NULL), 0);
	CHECK_EQ(g.files_total, 4);
	CHECK_EQ(g.files_done, 4);
	CHECK(alike(&a, &b));
	d.c = b.c;
	d.c.dataset.data_folder = d.root;
	d.c.dataset.seed = 1;
	make(&d, NULL);
	if (!CHECK(strcmp(format, "synthetic") == 0 || !alike(&a, &d)))
		fprintf(stderr, "%s\n", format);
}

/* ---- existing files ---- */

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (CHECK(f)) {
		fputs(text, f);
		fclose(f);
	}
}

static void resumed(const char *format)
{
	struct set s, t;
	struct pen_generate g = { 0 };
	char a[PEN_LAYOUT_PATH], b[PEN_LAYOUT_PATH], name[64];
	struct stat was, is;
	const bool image = !strcmp(format, "jpeg") || !strcmp(format, "png");
	const bool synthetic = !strcmp(format, "synthetic");

	snprintf(name, sizeof(name), "again-%s", format);
	set(&s, name, format);
	s.c.dataset.num_files_train = 6;
	s.c.dataset.num_samples_per_file = image ? 1 : 4;
	snprintf(name, sizeof(name), "whole-%s", format);
	t = s;
	snprintf(t.root, sizeof(t.root), "%s/%s", dir, name);
	s.c.dataset.data_folder = s.root;
	t.c.dataset.data_folder = t.root;
	s.c.dataset.format = s.format;
	t.c.dataset.format = t.format;
	make(&s, NULL);
	make(&t, NULL);
	path_of(&s, 2, a);
	path_of(&s, 4, b);
	CHECK_EQ(stat(b, &was), 0);
	CHECK_EQ(unlink(a), 0); /* missing */
	path_of(&s, 0, a);
	put_file(a, "nothing like it"); /* other content */
	path_of(&s, 5, a);
	CHECK_EQ(truncate(a, image || synthetic ? 0 : 300), 0); /* truncated */
	make(&s, &g);
	CHECK_EQ(g.files_kept, 3);
	CHECK(g.bytes_done > 0);
	CHECK_EQ(stat(b, &is), 0);
	CHECK(was.st_ino == is.st_ino && was.st_mtime == is.st_mtime);
	if (!CHECK(alike(&s, &t)))
		fprintf(stderr, "%s\n", format);
	/* other settings, the same names */
	if (synthetic)
		return;
	s.c.dataset.record_length = 4096 + 300;
	if (!CHECK_EQ(kept(&s), 0))
		fprintf(stderr, "%s\n", format);
	CHECK_EQ(kept(&s), 6);
	if (image)
		return;
	s.c.dataset.num_samples_per_file = 5;
	if (!CHECK_EQ(kept(&s), 0))
		fprintf(stderr, "%s\n", format);
	if (!strcmp(format, "csv") || strstr(format, "tfrecord") ||
	    strstr(format, "indexed"))
		return; /* these do not store the type */
	snprintf(s.type, sizeof(s.type), "int8");
	if (!CHECK_EQ(kept(&s), 0))
		fprintf(stderr, "%s\n", format);
	if (strcmp(format, "npz") != 0)
		return;
	s.c.dataset.compression = PEN_COMPRESS_ZIP;
	CHECK_EQ(kept(&s), 0);
	CHECK_EQ(kept(&s), 6);
	s.c.dataset.compression = PEN_COMPRESS_NONE;
	CHECK_EQ(kept(&s), 0);
}

/* A missing index is generated again, with its file. */
static void side_files(void)
{
	struct set s;
	char path[PEN_LAYOUT_PATH + 16];

	set(&s, "side-b", "indexed_binary");
	make(&s, NULL);
	path_of(&s, 1, path);
	strncat(path, ".sz.idx", 10);
	CHECK_EQ(unlink(path), 0);
	CHECK_EQ(kept(&s), 2);
	CHECK_EQ(access(path, F_OK), 0);
	set(&s, "side-t", "tfrecord");
	make(&s, NULL);
	snprintf(path, sizeof(path), "%s/index/train/img_1_of_3.tfrecord.idx",
		 s.root);
	CHECK_EQ(unlink(path), 0);
	CHECK_EQ(kept(&s), 2);
	CHECK_EQ(access(path, F_OK), 0);
}

/* ---- interruption ---- */

static void run_child(const struct set *s)
{
	struct pen_generate g = { 0 };

	_exit(make_as(s, 0, 1, 2, &g, NULL) ? 1 : 0);
}

/* Stops after n complete files. */
static void await_files(int fd, unsigned n)
{
	char buf[4096] __attribute__((aligned(8)));
	unsigned got = 0;

	while (got < n) {
		const ssize_t k = read(fd, buf, sizeof(buf));
		const struct inotify_event *e;

		if (k <= 0)
			break;
		for (ssize_t at = 0; at < k;
		     at += (ssize_t)(sizeof(*e) + e->len)) {
			e = (const struct inotify_event *)(buf + at);
			got += !!(e->mask & IN_MOVED_TO);
		}
	}
}

static uint64_t count_there(const struct set *s)
{
	struct pen_data_layout l;
	struct pen_datafile d;
	char path[PEN_LAYOUT_PATH];
	uint64_t n = 0;

	CHECK_EQ(pen__layout_init(&l, &s->c, NULL), 0);
	CHECK_EQ(pen__datafile_init(&d, &l, NULL), 0);
	for (uint64_t i = 0; i < l.nfiles; i++) {
		const bool there = pen__datafile_there(&d, i);

		pen__layout_path(&l, i, path, sizeof(path));
		/* a final name means a complete file */
		CHECK_EQ(there, access(path, F_OK) == 0);
		n += there;
	}
	pen__datafile_fini(&d);
	pen__layout_fini(&l);
	return n;
}

static void killed(const char *format)
{
	struct set s, t;
	char path[512], ours[512], other[512], name[64];
	uint64_t there;
	int fd, status;
	pid_t pid;

	snprintf(name, sizeof(name), "killed-%s", format);
	set(&s, name, format);
	s.c.dataset.num_files_train = 40;
	s.c.dataset.record_length = 1 << 18;
	s.c.dataset.num_samples_per_file = 2;
	snprintf(path, sizeof(path), "%s/train", s.root);
	CHECK_EQ(mkdir(s.root, 0777), 0);
	CHECK_EQ(mkdir(path, 0777), 0);
	fd = inotify_init1(IN_CLOEXEC);
	CHECK(fd >= 0 && inotify_add_watch(fd, path, IN_MOVED_TO) >= 0);
	pid = fork();
	if (!pid)
		run_child(&s);
	await_files(fd, 5);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	close(fd);
	there = count_there(&s);
	CHECK(there >= 5);
	/* incomplete files are removed; files of others stay */
	snprintf(ours, sizeof(ours), "%s/train/img_01_of_40.%s.123-4.tmp",
		 s.root, format);
	snprintf(other, sizeof(other), "%s/train/img_01_of_40.x.tmp", s.root);
	put_file(ours, "x");
	put_file(other, "x");
	CHECK_EQ(kept(&s), there);
	CHECK(access(ours, F_OK) && !access(other, F_OK));
	CHECK_EQ(unlink(other), 0);
	t = s;
	snprintf(t.root, sizeof(t.root), "%s/unkilled-%s", dir, format);
	t.c.dataset.data_folder = t.root;
	make(&t, NULL);
	CHECK(alike(&s, &t)); /* no temporary file either */
	remove_tree(s.root);
	remove_tree(t.root);
}

static int stop(void *arg, const struct pen_generate *g)
{
	CHECK_EQ(g->files_total, 100);
	return ++*(int *)arg >= 2;
}

static unsigned ntmp;
static int count_tmp(const char *path, const struct stat *sb, int kind,
		     struct FTW *at)
{
	(void)sb;
	(void)kind;
	(void)at;
	ntmp += strstr(path, ".tmp") != NULL;
	return 0;
}

static void check_no_tmp(const char *root)
{
	ntmp = 0;
	nftw(root, count_tmp, 16, FTW_PHYS);
	CHECK_EQ(ntmp, 0);
}

static void interrupted(void)
{
	struct pen_generate g = { 0 };
	struct pen_err err = { 0 };
	struct set s;
	int asked = 0;

	set(&s, "stopped", "npy");
	s.c.dataset.num_files_train = 100;
	s.c.dataset.record_length = 64 << 20;
	g.tick = stop;
	g.arg = &asked;
	CHECK_EQ(make_as(&s, 0, 1, 2, &g, &err), PEN_ECLOSED);
	CHECK_EQ(err.code, PEN_ECLOSED);
	CHECK_EQ(asked, 2);
	CHECK(g.files_done < 100);
	check_no_tmp(s.root);
	count_there(&s);
	remove_tree(s.root);
}

/* ---- errors ---- */

static void refuse(const struct set *s, int code, const char *what)
{
	struct pen_generate g = { 0 };
	struct pen_err err = { 0 };

	CHECK_EQ(make_as(s, 0, 1, 2, &g, &err), code);
	CHECK_EQ(err.code, code);
	if (!CHECK(strstr(err.msg, what)))
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
}

static void wrong_settings(void)
{
	struct set s;

	set(&s, "wrong", "npy");
	s.c.dataset.compression = PEN_COMPRESS_GZIP;
	refuse(&s, PEN_EINVAL, "lzf with hdf5");
	s.c.dataset.compression = PEN_COMPRESS_NONE;
	s.c.dataset.compressibility = 1;
	refuse(&s, PEN_EINVAL, "less than 1");
	s.c.dataset.compressibility = 0;
	snprintf(s.type, sizeof(s.type), "float128");
	refuse(&s, PEN_ENOTSUP, "cannot generate");
	set(&s, "wrong", "npz");
	s.c.dataset.num_files_train = 1000000;
	s.c.dataset.record_length = 1e12;
	refuse(&s, PEN_EIO, "needs 1 EB, but only ");
	CHECK_EQ(count_there(set(&s, "wrong", "npz")), 0);
	set(&s, "wrongest", "hdf5");
	s.c.dataset.hdf5_chunk_dims.n = 2;
	s.chunk[0] = s.chunk[1] = 1;
	refuse(&s, PEN_EINVAL, "3 numbers");
	check_no_tmp(s.root);
}

static void no_folder(void)
{
	struct set s;
	char path[512];

	set(&s, "file", "npy");
	put_file(s.root, "x");
	refuse(&s, PEN_ENOTFOUND, "cannot create the directory");
	set(&s, "deep", "npy");
	CHECK_EQ(mkdir(s.root, 0777), 0);
	snprintf(path, sizeof(path), "%s/train", s.root);
	put_file(path, "x");
	refuse(&s, PEN_EINVAL, "not a directory");
	set(&s, "taken", "npy");
	make(&s, NULL);
	path_of(&s, 0, path);
	CHECK_EQ(unlink(path), 0);
	CHECK_EQ(mkdir(path, 0777), 0); /* in place of a file */
	refuse(&s, PEN_EIO, "cannot rename the temporary file");
	check_no_tmp(s.root);
	if (!geteuid())
		return;
	set(&s, "closed", "npy");
	make(&s, NULL);
	snprintf(path, sizeof(path), "%s/train", s.root);
	CHECK_EQ(chmod(path, 0555), 0);
	refuse(&s, PEN_EIO, "cannot write to the directory");
	CHECK_EQ(chmod(path, 0755), 0);
}

/* A limit on the file size emulates a full disk. */
static void no_room(void)
{
	const unsigned before = atomic_load(&test_failures);
	struct rlimit small = { 1 << 20, 1 << 20 };
	struct set s;
	int status = -1;
	pid_t pid;

	set(&s, "full", "npz");
	s.c.dataset.record_length = 4 << 20;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &small);
		refuse(&s, PEN_EIO, "cannot write the file");
		check_no_tmp(s.root);
		CHECK_EQ(count_there(&s), 0);
		_exit(atomic_load(&test_failures) != before);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* Failed allocations cause an error, or a file that is generated again; never
 * an incomplete one. */
static void memory(const char *format)
{
	struct set s;
	char path[PEN_LAYOUT_PATH], name[64];

	snprintf(name, sizeof(name), "memory-%s", format);
	set(&s, name, format);
	s.c.dataset.record_length_stdev = 10;
	make(&s, NULL);
	path_of(&s, 1, path);
	for (uint64_t i = 1; i < 10000; i += TEST_EVERY(2)) {
		struct pen_generate g = { 0 };
		struct pen_err err = { 0 };
		uint64_t n;
		int rc;

		CHECK_EQ(unlink(path), 0);
		pen__mem_fail_nth(i, false);
		rc = make_as(&s, 0, 1, 1, &g, &err);
		n = pen__mem_count();
		pen__mem_fail_nth(0, false);
		/* EAGAIN: a thread failed to start */
		if (!CHECK(rc == 0 || rc == PEN_ENOMEM || err.sys == EAGAIN))
			fprintf(stderr, "%s: %s\n", err.where, err.msg);
		CHECK_EQ(err.code, rc);
		if (n < i)
			break;
		if (rc)
			make(&s, NULL);
	}
	check_no_tmp(s.root);
	CHECK_EQ(kept(&s), 3);
}

static void clean_up(void)
{
	remove_tree(dir);
}

int main(void)
{
	static const char *const formats[] = { "npy",
					       "npz",
					       "hdf5",
					       "tfrecord",
					       "csv",
					       "jpeg",
					       "png",
					       "indexed_binary",
					       "mmap_indexed_binary",
					       "synthetic" };

	snprintf(dir, sizeof(dir), "generate-%d", (int)getpid());
	if (!CHECK_EQ(mkdir(dir, 0777), 0))
		return test_end();
	atexit(clean_up);
	others_read();
	for (unsigned i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		same(formats[i]);
		resumed(formats[i]);
	}
	side_files();
	killed("npz");
	killed("tfrecord");
	interrupted();
	wrong_settings();
	no_folder();
	no_room();
	memory("npz");
	memory("tfrecord");
	memory("indexed_binary");
	return test_end();
}
