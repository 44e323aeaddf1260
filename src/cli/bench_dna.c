/*
 * bench dna: the whole of a sequence job, as its authors' guide has it: DNA
 * and RNA files of several sizes go into a dictionary in memory, a vocabulary
 * of 4-mers is counted, and a Doc2Vec model is trained over them, for numbers
 * of loader threads and batch sizes. Waiting for data and computing are told
 * apart. Training is the example program, on the public API, in a process of
 * its own; an epoch that is not whole is an error of that program.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/arms.h"
#include "cli/child.h"
#include "engine/spec.h"
#include "report/doc.h"

#define MOST 16
#define MOST_FILES 64

/* A file that is made: what it took to make it ready. */
struct seqs {
	char name[48]; /* "dna 1MB" */
	char path[4096], words[4096];
	double dict_s, dict_share, vocab_s, samples, bytes;
};

struct dna {
	struct arms a;
	char size[MOST][24];
	size_t nsizes;
	bool chosen[3];
	uint64_t workers[MOST], batch[MOST];
	size_t nworkers, nbatches;
	bool none, adam; /* --model none, --update adam */
	struct seqs file[MOST_FILES];
	size_t nfiles;
};

static const char *const kinds[] = { "dna", "rna", "dna+rna" };

static const struct flag flags[] = {
	{ "--sizes", "LIST",
	  "of the files, as 10MB,0.125GiB (default 1MB,4MB)" },
	{ "--kinds", "LIST",
	  "of dna, rna and dna+rna (half each); default: the first two" },
	{ "--workers", "LIST", "threads of the loader (default 1,2)" },
	{ "--batch", "LIST", "sequences in a batch (default 1,4,32)" },
	{ "--model", "none|dm", "none: only load (default dm)" },
	{ "--update", "sparse|adam",
	  "of the model: only rows that are touched, or all (default sparse)" },
	ARMS_FLAGS,
	{ NULL, NULL, NULL },
};

/* ---- files ---- */

/* Runs a command of ours; what it printed is a document when asked for. */
static int command(const char *const *argv, struct pen_doc *doc,
		   struct child *c, struct pen_err *err)
{
	struct pen_text out = { 0 };
	int rc = child_run(argv, &out, c, err);

	if (!rc && doc)
		rc = pen__jdoc_open(&doc->j, out.p ? out.p : "", out.n, argv[1],
				    err);
	pen__text_fini(&out);
	return rc;
}

static int make_file(struct seqs *s, const char *kind, const char *size,
		     struct pen_err *err)
{
	char set[40];
	const char *gen[] = { "", "gen", kind, s->path, set, "--json", NULL };
	const char *dict[] = { "",	"ddict",	"load",
			       s->path, "format=lines", "--json",
			       NULL };
	const char *vocab[] = { "",	  "vocab",     s->path, "format=lines",
				"k=4",	  "pads=true", "-o",	s->words,
				"--json", NULL };
	struct pen_doc d = { .name = kind };
	struct child c;
	int rc;

	snprintf(set, sizeof(set), "size=%s", size);
	rc = command(gen, NULL, &c, err);
	if (!rc)
		rc = command(dict, &d, &c, err);
	if (rc)
		return rc;
	s->dict_s = pen__doc_number(&d, 0, "seconds");
	s->dict_share = pen__doc_number(&d, 0, "bytes_per_byte");
	s->samples = pen__doc_number(&d, 0, "keys");
	s->bytes = pen__doc_number(&d, 0, "value_bytes");
	pen__jdoc_close(&d.j);
	rc = command(vocab, NULL, &c, err);
	s->vocab_s = c.real_s;
	return rc;
}

static int make_files(struct dna *g)
{
	struct pen_err err = { 0 };

	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; g->chosen[k] && i < g->nsizes; i++) {
			struct seqs *s = &g->file[g->nfiles++];

			snprintf(s->name, sizeof(s->name), "%s %s", kinds[k],
				 g->size[i]);
			snprintf(s->path, sizeof(s->path), "%s/%zu.txt",
				 g->a.folder, g->nfiles);
			snprintf(s->words, sizeof(s->words), "%s/%zu.words",
				 g->a.folder, g->nfiles);
			if (make_file(s, kinds[k], g->size[i], &err))
				return complain(&err);
		}
	return -1;
}

/* ---- one arm ---- */

/* The example beside us: in the build tree, or where it is installed. */
static void find_program(char *path, size_t cap)
{
	static const char *const places[] = { "doc2vec",
					      "../../examples/doc2vec",
					      "../libexec/penstock/doc2vec" };
	const char *given = getenv("PENSTOCK_DOC2VEC");
	char dir[3800];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	if (given && given[0]) {
		snprintf(path, cap, "%s", given);
		return;
	}
	while (n > 0 && dir[n - 1] != '/')
		n--;
	dir[n > 0 ? n : 0] = '\0';
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, cap, "%s%s", dir, places[i]);
		if (!access(path, X_OK))
			return;
	}
}

static void put_figures(struct pen_text *j, const struct seqs *s,
			const struct pen_doc *d, const struct child *c)
{
	uint32_t e = pen__jdoc_first(&d->j, pen__doc_at(d, 0, "epochs"));
	double n = 0, whole = 0, load = 0, model = 0, samples = 0;
	char sum[32];

	snprintf(sum, sizeof(sum), "%.0f", pen__doc_number(d, e, "content"));
	pen__json_str(j, "content_sum", sum);
	for (; e != PEN_JDOC_NONE; e = pen__jdoc_next(&d->j, e)) {
		whole += pen__doc_number(d, e, "seconds");
		load += pen__doc_number(d, e, "load_s");
		model += pen__doc_number(d, e, "model_s");
		samples += pen__doc_number(d, e, "samples");
		n++;
	}
	pen__json_num(j, "n_rows", samples);
	pen__json_num(j, "expected_rows", n * s->samples);
	pen__json_num(j, "epoch_s", whole / n);
	pen__json_num(j, "load_s", load / n);
	pen__json_num(j, "model_s", model / n);
	pen__json_num(j, "samples_per_s", samples / whole);
	pen__json_num(j, "open_s", pen__doc_number(d, 0, "open_s"));
	pen__json_num(j, "real_s", c->real_s);
	pen__json_num(j, "user_s", c->user_s);
	pen__json_num(j, "system_s", c->system_s);
	pen__json_num(j, "dict_s", s->dict_s);
	pen__json_num(j, "dict_bytes_per_byte", s->dict_share);
	pen__json_num(j, "vocab_s", s->vocab_s);
	pen__json_num(j, "overall_s", s->dict_s + s->vocab_s + c->real_s);
	pen__json_num(j, "n_sequences", s->samples);
	pen__json_num(j, "data_bytes", s->bytes);
	pen__json_int(j, "peak_memory_bytes", c->peak_bytes);
}

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	const struct dna *g = (const struct dna *)(const void *)m->of;
	const struct seqs *s = &g->file[m->kind];
	char program[4096], words[4200], batch[40], threads[40], epochs[24];
	const char *argv[] = { program,	   s->path,
			       words,	   batch,
			       threads,	   "--json",
			       "--epochs", epochs,
			       "--model",  g->none ? "none" : "dm",
			       "--update", g->adam ? "adam" : "sparse",
			       NULL };
	struct pen_doc d = { .name = s->path };
	struct child c;
	int rc;

	find_program(program, sizeof(program));
	snprintf(words, sizeof(words), "format.vocab=%s", s->words);
	snprintf(batch, sizeof(batch), "batch_size=%llu",
		 (unsigned long long)(m->value & 0xffffffff));
	snprintf(threads, sizeof(threads), "threads=%llu",
		 (unsigned long long)(m->value >> 32));
	snprintf(epochs, sizeof(epochs), "%llu",
		 (unsigned long long)b->spec->epochs);
	rc = command(argv, &d, &c, err);
	if (rc)
		return rc;
	put_figures(j, s, &d, &c);
	pen__jdoc_close(&d.j);
	return 0;
}

/* ---- all of them ---- */

static int add_arms(struct dna *g, size_t file)
{
	for (size_t w = 0; w < g->nworkers; w++)
		for (size_t b = 0; b < g->nbatches; b++) {
			char name[48];
			struct arm *m;

			snprintf(name, sizeof(name), "%s, batch %llu",
				 counted(g->workers[w], "thread"),
				 (unsigned long long)g->batch[b]);
			m = arms_add(&g->a, name, g->file[file].name,
				     g->workers[w] << 32 | g->batch[b]);
			if (!m)
				return EXIT_FAILED;
			m->kind = (int)file;
			m->as_it_is = true;
			snprintf(m->check, sizeof(m->check), "%s",
				 g->file[file].name);
		}
	return -1;
}

static int prepare(struct arms *a)
{
	struct dna *g = (struct dna *)(void *)a;
	int rc;

	if (!g->chosen[0] && !g->chosen[1] && !g->chosen[2])
		g->chosen[0] = g->chosen[1] = true;
	if (!a->b.spec->epochs)
		return complain_usage("bench dna: epochs=0 has no end");
	snprintf(a->b.path, sizeof(a->b.path), "doc2vec");
	rc = bench_open_rows(&a->b);
	if (rc < 0)
		rc = arms_folder(a);
	if (rc < 0)
		rc = make_files(g);
	for (size_t i = 0; rc < 0 && i < g->nfiles; i++)
		rc = add_arms(g, i);
	return rc;
}

static int take_sizes(struct dna *g, const char *text)
{
	g->nsizes = 0;
	while (*text) {
		size_t n = strcspn(text, ",");
		uint64_t bytes;
		char *to = g->size[g->nsizes];

		if (g->nsizes == MOST || !n || n >= sizeof(g->size[0]))
			return complain_usage("bench dna: --sizes: not a list "
					      "as 1MB,4MB");
		memcpy(to, text, n);
		to[n] = '\0';
		if (pen__parse_size(to, &bytes) || bytes < 2048)
			return complain_usage("bench dna: --sizes: '%s' is no "
					      "size of 2 kB or more",
					      to);
		g->nsizes++;
		text += n + (text[n] == ',');
	}
	return -1;
}

static int take_kinds(struct dna *g, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, ","), k = 0;

		while (k < 3 &&
		       (strlen(kinds[k]) != n || strncmp(kinds[k], text, n)))
			k++;
		if (k == 3)
			return complain_usage("bench dna: --kinds: '%.*s' is "
					      "none of dna, rna, dna+rna",
					      (int)n, text);
		g->chosen[k] = true;
		text += n + (text[n] == ',');
	}
	return -1;
}

static int take_list(const struct args *arg, uint64_t *v, size_t *n)
{
	if (!arms_list(arg->value, v, n, MOST))
		return complain_usage("bench dna: %s: '%s' is not a list as "
				      "1,2,4",
				      arg->key, arg->value);
	for (size_t i = 0; i < *n; i++)
		if (!v[i] || v[i] > 65536)
			return complain_usage("bench dna: %s: 1 to 65536",
					      arg->key);
	return -1;
}

static int take_choice(const struct args *arg, const char *yes, const char *no,
		       bool *out)
{
	*out = !strcmp(arg->value, yes);
	return *out || !strcmp(arg->value, no)
		       ? -1
		       : complain_usage("bench dna: %s: %s or %s, not '%s'",
					arg->key, yes, no, arg->value);
}

static int take_arg(struct arms *a, struct args *arg, int kind)
{
	struct dna *g = (struct dna *)(void *)a;

	if (kind == ARG_PATH ||
	    (kind == ARG_SETTING && strcmp(arg->key, "epochs") != 0))
		return complain_usage("bench dna makes its data, and takes no "
				      "'%s'; epochs= is the one setting",
				      arg->argv[arg->at - 1]);
	if (kind != ARG_FLAG)
		return arms_arg(a, arg, kind);
	if (!strcmp(arg->key, "--sizes"))
		return take_sizes(g, arg->value);
	if (!strcmp(arg->key, "--kinds"))
		return take_kinds(g, arg->value);
	if (!strcmp(arg->key, "--workers"))
		return take_list(arg, g->workers, &g->nworkers);
	if (!strcmp(arg->key, "--batch"))
		return take_list(arg, g->batch, &g->nbatches);
	if (!strcmp(arg->key, "--model"))
		return take_choice(arg, "none", "dm", &g->none);
	if (!strcmp(arg->key, "--update"))
		return take_choice(arg, "adam", "sparse", &g->adam);
	return arms_arg(a, arg, kind);
}

static int run_dna(int argc, char **argv)
{
	struct dna *g = pen__calloc(1, sizeof(*g));
	int rc;

	if (!g)
		return complain_usage("bench dna: out of memory");
	*g = (struct dna){ .a = { .cmd = &pen__bench_dna,
				  .kind = &pen__kind_dna,
				  .any_order = true,
				  .take = take_arg,
				  .prepare = prepare,
				  .run = run_arm },
			   .size = { "1MB", "4MB" },
			   .nsizes = 2,
			   .workers = { 1, 2 },
			   .nworkers = 2,
			   .batch = { 1, 4, 32 },
			   .nbatches = 3 };
	rc = arms_main(&g->a, argc, argv);
	pen__free(g);
	return rc;
}

static const char *const examples[] = {
	"penstock bench dna",
	"DNA and RNA, 1 and 4 MB, 1 and 2 threads, batches of 1, 4 and 32",
	"penstock bench dna --kinds dna+rna --sizes 0.125GiB --batch 4",
	"the file of the published example: 130,946 sequences",
	"penstock bench dna --model none --workers 1,2,4",
	"loading alone",
	NULL,
};

const struct command pen__bench_dna = {
	.name = "bench dna",
	.args = "[epochs=N] [flags]",
	.summary = "sequences to Doc2Vec: dictionary, vocabulary, epochs",
	.about = "Makes files of random sequences, puts them into a dictionary "
		 "in shared memory, counts their words, and trains Doc2Vec "
		 "over them. The table has the time of each of these, an "
		 "epoch's time and how much of it was waiting for data and "
		 "how much the model, real, user and system time, and all "
		 "together. All arms of a file have to deliver the same.",
	.flags = flags,
	.examples = examples,
	.run = run_dna,
};
