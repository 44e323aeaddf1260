/* The command line. Every mistake is reported in one line. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char doc2vec_usage[] =
	"usage: doc2vec [options] PATH... [key=value]...\n"
	"\n"
	"Learns a vector for every sequence (Doc2Vec, distributed memory, "
	"negative\n"
	"sampling). Takes the settings of `penstock load`; format=lines and\n"
	"format.tokens=dm are the defaults.\n"
	"\n"
	"  --model dm|none        none: load only, to measure loading alone\n"
	"  --update sparse|adam|sgd   sparse: Adam on rows with a gradient;\n"
	"                         adam: Adam on all rows in every step\n"
	"  --dim N                length of the vectors (24)\n"
	"  --rate X               learning rate (0.02)\n"
	"  --parts N              updates per batch, each from a part of\n"
	"                         every sequence (4)\n"
	"  --epochs N             number of epochs (1)\n"
	"  --steps N              stop after N batches\n"
	"  --train-threads N      threads for training (one per CPU); the "
	"result\n"
	"                         does not depend on them\n"
	"  --seed N               seed for weights, order and noise (0)\n"
	"  --vectors DIR          write docs.npy, words.npy, out.npy, "
	"words.txt\n"
	"  --labels FILE          two classes, a label per line and sequence: "
	"prints\n"
	"                         how well the vectors tell them apart\n"
	"  --checkpoint FILE      save the state at the end, and\n"
	"  --every N              after every N batches\n"
	"  --resume FILE          continue from a checkpoint, on any number\n"
	"                         of ranks\n"
	"  --json                 print the results as JSON\n"
	"  --quiet                show no progress\n"
	"\n"
	"Under mpirun or srun, the ranks train one model: batch_size= is the "
	"slice of a\n"
	"rank. deterministic=false halves the bytes that ranks exchange; the "
	"result then\n"
	"depends slightly on their number.\n"
	"\n"
	"examples:\n"
	"  penstock gen dna seq.txt size=0.125GB\n"
	"  penstock vocab seq.txt format=lines k=4 pads=true -o seq.vocab\n"
	"  doc2vec seq.txt format.vocab=seq.vocab batch_size=16 --epochs 3\n"
	"  doc2vec seq.txt format.vocab=seq.vocab --model none\n"
	"  mpirun -n 4 doc2vec seq.txt format.vocab=seq.vocab batch_size=64\n";

int fail_at(struct pen_err *err, int code, const char *where, const char *fmt,
	    ...)
{
	va_list ap;

	*err = (struct pen_err){ .code = code };
	snprintf(err->where, sizeof(err->where), "%s", where);
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return code;
}

int fail_nomem(struct pen_err *err, const char *what_for)
{
	return fail_at(err, PEN_ENOMEM, "memory", "not enough for %s",
		       what_for);
}

int fail_sys(struct pen_err *err, const char *where)
{
	const int number = errno;

	fail_at(err, PEN_EIO, where, "%s", strerror(number));
	err->sys = number;
	return err->code;
}

void options_init(struct options *o)
{
	cpu_set_t cpus; /* that this rank may use */
	const int n = sched_getaffinity(0, sizeof(cpus), &cpus)
			      ? 1
			      : CPU_COUNT(&cpus);

	*o = (struct options){ .dim = 24,
			       .parts = 4,
			       .rate = 0.02,
			       .epochs = 1,
			       .steps = UINT64_MAX };
	o->threads = (unsigned)n;
}

/* Numeric options and their ranges. */
static const struct limits {
	int opt;
	const char *name;
	double lo, hi;
	bool whole;
} numbers[] = {
	{ 'd', "--dim", 1, MOST_DIM, true },
	{ 'r', "--rate", 0, 1e6, false },
	{ 'e', "--epochs", 0, 1e15, true },
	{ 's', "--steps", 0, 1e15, true },
	{ 't', "--train-threads", 1, 1024, true },
	{ 'p', "--parts", 1, 4096, true },
	{ 'E', "--every", 1, 1e15, true },
	{ 'S', "--seed", 0, 1e15, true },
};

static const struct limits *limits_of(int opt)
{
	const struct limits *l = numbers;

	while (l->opt != opt)
		l++;
	return l;
}

static bool number(const char *text, const struct limits *l, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	return !errno && end != text && !*end && *out >= l->lo &&
	       *out <= l->hi && (!l->whole || *out == floor(*out));
}

/* Sets --model or --update; false: not a valid choice. */
static bool choose(struct options *o, int opt, const char *value)
{
	static const char *const updates[] = { "sparse", "adam", "sgd" };

	if (opt == 'm') {
		o->none = !strcmp(value, "none");
		return o->none || !strcmp(value, "dm");
	}
	for (unsigned i = 0; i < 3; i++) {
		o->update = (enum update)i;
		if (!strcmp(value, updates[i]))
			return true;
	}
	return false;
}

static bool set_number(struct options *o, int opt, const char *value)
{
	double v;

	if (!number(value, limits_of(opt), &v))
		return false;
	switch (opt) {
	case 'd':
		o->dim = (unsigned)v;
		return true;
	case 'r':
		o->rate = v;
		return true;
	case 'e':
		o->epochs = (uint64_t)v;
		return true;
	case 's':
		o->steps = (uint64_t)v;
		return true;
	case 't':
		o->threads = (unsigned)v;
		return true;
	case 'p':
		o->parts = (unsigned)v;
		return true;
	case 'E':
		o->every = (uint64_t)v;
		return true;
	default:
		o->seed = (uint64_t)v;
		return true;
	}
}

/* Reports an invalid value. */
static int bad_value(int opt, const char *value)
{
	const struct limits *l;

	if (opt == 'm')
		fprintf(stderr,
			"doc2vec: --model: '%s' is not a model; use dm or "
			"none\n",
			value);
	else if (opt == 'u')
		fprintf(stderr,
			"doc2vec: --update: '%s' is not an update rule; use "
			"sparse, adam or sgd\n",
			value);
	if (opt == 'm' || opt == 'u')
		return 2;
	l = limits_of(opt);
	fprintf(stderr,
		"doc2vec: %s: '%s' is not valid; use a %snumber from %.0f to "
		"%.0f\n",
		l->name, value, l->whole ? "whole " : "", l->lo, l->hi);
	return 2;
}

static int bad_option(const char *option, int c)
{
	fprintf(stderr, "doc2vec: %s: %s; see doc2vec --help\n", option,
		c == ':' ? "requires a value"
			 : "unknown option, or it takes no value");
	return 2;
}

/* Where the name of a file goes; NULL: not such an option. */
static const char **file_option(struct options *o, int c)
{
	switch (c) {
	case 'v':
		return &o->vectors;
	case 'l':
		return &o->labels;
	case 'c':
		return &o->save;
	case 'R':
		return &o->resume;
	default:
		return NULL;
	}
}

static int unusable(const char *option, const char *why)
{
	fprintf(stderr, "doc2vec: %s: %s\n", option, why);
	return 2;
}

/* Options that have no effect together. */
static int check(const struct options *o)
{
	if (o->every && !o->save)
		return unusable("--every", "requires --checkpoint");
	if (o->none && (o->vectors || o->labels || o->save || o->resume))
		return unusable("--model",
				"none trains nothing; omit --vectors, "
				"--labels, --checkpoint and --resume");
	return 0;
}

int options_parse(struct options *o, int argc, char **argv, bool *help)
{
	static const struct option longs[] = {
		{ "model", 1, 0, 'm' },		{ "update", 1, 0, 'u' },
		{ "dim", 1, 0, 'd' },		{ "rate", 1, 0, 'r' },
		{ "epochs", 1, 0, 'e' },	{ "steps", 1, 0, 's' },
		{ "train-threads", 1, 0, 't' }, { "seed", 1, 0, 'S' },
		{ "parts", 1, 0, 'p' },		{ "every", 1, 0, 'E' },
		{ "vectors", 1, 0, 'v' },	{ "labels", 1, 0, 'l' },
		{ "checkpoint", 1, 0, 'c' },	{ "resume", 1, 0, 'R' },
		{ "json", 0, 0, 'j' },		{ "quiet", 0, 0, 'q' },
		{ "help", 0, 0, 'h' },		{ 0 },
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		bool good = true;

		if (c == 'm' || c == 'u')
			good = choose(o, c, optarg);
		else if (file_option(o, c))
			*file_option(o, c) = optarg;
		else if (c == 'j')
			o->json = true;
		else if (c == 'q')
			o->quiet = true;
		else if (c == 'h')
			*help = true;
		else if (c == '?' || c == ':')
			return bad_option(argv[optind - 1], c);
		else
			good = set_number(o, c, optarg);
		if (!good)
			return bad_value(c, optarg);
	}
	return check(o);
}
