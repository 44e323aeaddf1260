/*
 * ddict: a dictionary of samples in the memory of many processes. This file has
 * the code that its subcommands share, and stat, which examines an existing
 * dictionary.
 */
#include "cli/cmd_ddict.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"

int dict_setting(struct dict *x, const char *setting)
{
	if (x->nset == DICT_SETTINGS)
		return complain_usage(P_TOO_LONG, "ddict", "too many settings");
	x->set[x->nset++] = setting;
	return -1;
}

int dict_ranks(struct dict *x)
{
	struct pen_err err = { 0 };

	if (pen_ranks_open(&x->ranks, &err))
		return complain(&err);
	x->comm = x->ranks->comm;
	mute(x->comm->rank != 0);
	return -1;
}

int dict_agree(struct dict *x, int rc, struct pen_err *err)
{
	rc = pen__comm_agree(x->comm, rc, err);
	return rc ? complain(err) : -1;
}

int dict_open(struct dict *x)
{
	struct pen_err err = { 0 };

	if (pen_ddict_open(&x->d, x->ranks, x->set, x->nset, &err))
		return complain(&err);
	return -1;
}

void dict_close(struct dict *x)
{
	pen_ddict_close(x->d);
	pen_ranks_close(x->ranks);
	x->d = NULL;
	x->ranks = NULL;
	x->comm = NULL;
}

int dict_table(struct pen_ddict *d, struct pen_err *err)
{
	printf("\n  %5s  %-20s %10s %10s %10s %12s %6s %6s %6s\n", "shard",
	       "host", "total", "used", "free", "keys", "use", "blocks",
	       "procs");
	for (uint32_t i = 0; i < pen_ddict_nshards(d); i++) {
		struct pen_shard_stats s;
		int rc = pen_ddict_stats(d, i, &s, sizeof(s), err);

		if (rc)
			return rc;
		printf("  %5u  %-20.20s %10s %10s %10s %12s %5.1f%% %6llu "
		       "%6u\n",
		       s.shard, s.host, human_bytes((double)s.total_bytes),
		       human_bytes((double)s.used_bytes),
		       human_bytes((double)s.free_bytes), grouped(s.nkeys),
		       100 * s.utilisation, (unsigned long long)s.nfree_blocks,
		       s.nprocesses);
	}
	return 0;
}

int dict_json(struct pen_text *j, struct pen_ddict *d, struct pen_err *err)
{
	pen__json_open(j, "shards", '[');
	for (uint32_t i = 0; i < pen_ddict_nshards(d); i++) {
		struct pen_shard_stats s;
		int rc = pen_ddict_stats(d, i, &s, sizeof(s), err);

		if (rc)
			return rc;
		pen__json_open(j, NULL, '{');
		pen__json_int(j, "shard", s.shard);
		pen__json_str(j, "host", s.host);
		pen__json_int(j, "total_bytes", s.total_bytes);
		pen__json_int(j, "used_bytes", s.used_bytes);
		pen__json_int(j, "free_bytes", s.free_bytes);
		pen__json_int(j, "value_bytes", s.value_bytes);
		pen__json_int(j, "keys", s.nkeys);
		pen__json_num(j, "utilisation", s.utilisation);
		pen__json_int(j, "processes", s.nprocesses);
		pen__json_int(j, "puts", s.nputs);
		pen__json_int(j, "gets", s.ngets);
		pen__json_int(j, "served", s.nserved);
		pen__json_int(j, "free_blocks", s.nfree_blocks);
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
	return 0;
}

/* --- stat --- */

static const struct command cmd_stat;

static const struct flag stat_flags[] = {
	{ "--json", NULL, "print the result as JSON" },
	{ "--verify", NULL, "for a file: verify the checksum of all bytes" },
	{ NULL, NULL, NULL },
};

static int print_stat(struct pen_ddict *d, bool json)
{
	struct pen_text j = { 0 };
	struct pen_err err = { 0 };

	if (!json) {
		printf("%s\n", pen_ddict_transport(d));
		return dict_table(d, &err) ? complain(&err) : EXIT_OK;
	}
	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.ddict.stat/1");
	pen__json_str(&j, "transport", pen_ddict_transport(d));
	if (dict_json(&j, d, &err)) {
		pen__text_fini(&j);
		return complain(&err);
	}
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

static int run_stat(int argc, char **argv)
{
	struct args a = { .cmd = &cmd_stat, .argc = argc, .argv = argv };
	const char *what = NULL;
	bool json = false, verify = false, file;
	struct pen_err err = { 0 };
	struct pen_ddict *d;
	char setting[4200];
	int kind, rc;

	while ((kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			return EXIT_USAGE;
		if (kind == ARG_FLAG) {
			json |= !strcmp(a.key, "--json");
			verify |= !strcmp(a.key, "--verify");
		} else if (kind == ARG_SETTING || what) {
			return complain_usage(P_BAD_VALUE, "ddict stat",
					      "takes one name or one file");
		} else {
			what = a.value;
		}
	}
	if (!what)
		return complain_usage(
			P_MISSING_SETTING, "ddict stat",
			"no dictionary given; pass a name or a file");
	file = strchr(what, '/') || !access(what, F_OK);
	snprintf(setting, sizeof(setting), "%s=%.4096s",
		 file ? "restore" : "name", what);
	rc = pen_ddict_open(&d, NULL,
			    (const char *const[]){ setting, "create=false",
						   verify ? "verify=true"
							  : "verify=false" },
			    3, &err);
	if (rc)
		return complain(&err);
	rc = print_stat(d, json);
	pen_ddict_close(d);
	return rc;
}

static const char *const stat_examples[] = {
	"penstock ddict stat train",
	"keys, memory and number of processes of the named dictionary",
	"penstock ddict stat train.dict --verify",
	"the same for a saved dictionary",
	NULL,
};

static const struct command cmd_stat = {
	.name = "ddict stat",
	.args = "NAME|FILE [--json] [--verify]",
	.summary = "show the keys and memory of a dictionary",
	.about = "Joins the dictionary of that name on this machine, or maps a "
		 "saved one, and prints its memory and number of keys.",
	.flags = stat_flags,
	.examples = stat_examples,
	.run = run_stat,
};

static int run_ddict(int argc, char **argv)
{
	if (!argc)
		return complain_usage(P_MISSING_SETTING, "ddict",
				      "no subcommand given; use bench, load or "
				      "stat (see `penstock ddict --help`)");
	return complain_usage(
		P_UNKNOWN_NAME, "ddict",
		"unknown subcommand '%s'; use bench, load or stat", argv[0]);
}

static const struct command *const sub[] = {
	&pen__cmd_ddict_bench,
	&pen__cmd_ddict_load,
	&cmd_stat,
	NULL,
};

static const char *const examples[] = {
	"penstock ddict bench",
	"throughput of put and get, compared with a plain loop in C",
	"mpirun -n 4 penstock ddict load data/",
	"loads a data set into the memory of four ranks",
	NULL,
};

const struct command pen__cmd_ddict = {
	.name = "ddict",
	.ranks = true,
	.args = "bench|load|stat ...",
	.summary = "share samples in the memory of many processes",
	.about = "A distributed dictionary: samples by key, in memory that the "
		 "processes of a machine share without copies and that the "
		 "ranks of a job share across machines.",
	.examples = examples,
	.sub = sub,
	.run = run_ddict,
};
