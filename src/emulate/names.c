/*
 * Names of settings: what old ones are called today, what is a section, and
 * what an unknown one may have been meant to be. DLIO drops unknown keys
 * without a word, so that a slip of the pen measures something else than was
 * asked for; here each has to be somebody's.
 */
#include <stdio.h>
#include <string.h>

#include "emulate/config_int.h"

/* Also in front of what is below: train.eval_time.mean. */
struct alias {
	const char *old, *now;
};

static const struct alias sections[] = {
	{ "data_reader", "reader" },
	{ "data_loader", "reader" },
	{ NULL, NULL },
};

static const struct alias aliases[] = {
	{ "model", "model.name" },
	{ "logdir", "output.folder" },
	{ "model.model_size", "model.model_size_bytes" },
	{ "checkpoint.model_size", "model.model_size_bytes" },
	{ "workflow.evaluate", "workflow.evaluation" },
	{ "train.do_eval", "workflow.evaluation" },
	{ "checkpoint.do_checkpoint", "workflow.checkpoint" },
	{ "train.n_epochs", "train.epochs" },
	{ "train.eval_time", "evaluation.eval_time" },
	{ "train.eval_time_stdev", "evaluation.eval_time_stdev" },
	{ "train.eval_after_epoch", "evaluation.eval_after_epoch" },
	{ "checkpoint.output_folder", "checkpoint.checkpoint_folder" },
	{ "checkpoint.checkpoing_after_epoch",
	  "checkpoint.checkpoint_after_epoch" },
	{ "dataset.batch_size", "reader.batch_size" },
	{ "dataset.batch_size_eval", "reader.batch_size_eval" },
	{ "dataset.data_dir", "dataset.data_folder" },
	{ "dataset.num_files_val", "dataset.num_files_eval" },
	{ "dataset.record_length", "dataset.record_length_bytes" },
	{ "dataset.record_length_stdev", "dataset.record_length_bytes_stdev" },
	{ "dataset.record_length_resize",
	  "dataset.record_length_bytes_resize" },
	{ "dataset.chunking", "dataset.enable_chunking" },
	{ "reader.read_shuffle", "reader.file_shuffle" },
	{ "reader.memory_shuffle", "reader.sample_shuffle" },
	{ NULL, NULL },
};

static const char *const free_sections[] = { "loader.",
					     "storage.storage_options.", NULL };

/* Sections, as candidates for a name that is none. */
static const char *const known_sections[] = { "model",
					      "model.parallelism",
					      "model.transformer",
					      "workflow",
					      "storage",
					      "storage.storage_options",
					      "dataset",
					      "dataset.hdf5",
					      "dataset.parquet",
					      "reader",
					      "train",
					      "evaluation",
					      "checkpoint",
					      "checkpoint.ksm",
					      "output",
					      "output.metric",
					      "metric",
					      "profiling",
					      "hydra",
					      "hydra.run",
					      "loader",
					      NULL };

static const char *const times[] = { "reader.preprocess_time",
				     "train.computation_time",
				     "evaluation.eval_time", NULL };

bool pen__starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Is `name` equal to `key`, or below it? */
static bool is_or_below(const char *name, const char *key)
{
	const size_t n = strlen(key);

	return !strncmp(name, key, n) && (!name[n] || name[n] == '.');
}

/* Puts `now` in place of the first n bytes of name. */
static bool replace(char *name, size_t n, const char *now)
{
	char rest[PEN_KEY_MAX];

	snprintf(rest, sizeof(rest), "%s", name + n);
	return snprintf(name, PEN_KEY_MAX, "%s%s", now, rest) < PEN_KEY_MAX;
}

static bool is_free(const char *name)
{
	for (size_t i = 0; free_sections[i]; i++)
		if (pen__starts_with(name, free_sections[i]) &&
		    name[strlen(free_sections[i])])
			return true;
	return false;
}

/* "model" is a section today, and was a name: only the bare word is old. */
static bool is_old(const char *name, const struct alias *a)
{
	return strchr(a->old, '.') ? is_or_below(name, a->old)
				   : !strcmp(name, a->old);
}

bool pen__key_resolve(const char *given, struct pen_config_key *k)
{
	*k = (struct pen_config_key){ .rank = 1 };
	if (snprintf(k->name, sizeof(k->name), "%s", given) >=
	    (int)sizeof(k->name))
		return false;
	for (const struct alias *a = sections; a->old; a++)
		if (k->name[strlen(a->old)] == '.' &&
		    is_or_below(k->name, a->old)) {
			snprintf(k->old, sizeof(k->old), "%s", a->old);
			snprintf(k->now, sizeof(k->now), "%s", a->now);
			k->rank = a == sections ? 2 : 0;
			replace(k->name, strlen(a->old), a->now);
			break;
		}
	k->opt = pen__opt_find(pen__config_opts, k->name);
	for (const struct alias *a = aliases; !k->opt && a->old; a++)
		if (is_old(k->name, a)) {
			snprintf(k->old, sizeof(k->old), "%s", given);
			k->rank = 0;
			if (!replace(k->name, strlen(a->old), a->now))
				return false;
			snprintf(k->now, sizeof(k->now), "%s", k->name);
			k->opt = pen__opt_find(pen__config_opts, k->name);
			break;
		}
	k->free = !k->opt && is_free(k->name);
	return true;
}

bool pen__key_is_section(const char *name)
{
	const size_t n = strlen(name);

	for (const struct pen_opt *o = pen__config_opts; o->name; o++)
		if (!strncmp(o->name, name, n) && o->name[n] == '.')
			return true;
	for (const struct alias *a = sections; a->old; a++)
		if (!strcmp(name, a->old))
			return true;
	for (size_t i = 0; free_sections[i]; i++)
		if (!strncmp(free_sections[i], name, n) &&
		    free_sections[i][n] == '.')
			return true;
	return is_free(name) || pen__starts_with(name, "data_reader.") ||
	       !strcmp(name, "hydra");
}

struct pen_time_spec *pen__key_time(const char *name, struct pen_config *c)
{
	struct pen_time_spec *const of[] = { &c->reader.preprocess_time,
					     &c->train.computation_time,
					     &c->evaluation.eval_time };

	for (size_t i = 0; times[i]; i++)
		if (!strcmp(name, times[i]))
			return of[i];
	return NULL;
}

bool pen__key_in_time(const char *name)
{
	for (size_t i = 0; times[i]; i++)
		if (pen__starts_with(name, times[i]) &&
		    name[strlen(times[i])] != '\0')
			return true;
	return false;
}

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

#define MOST 256

/* Keys that end in one of the words; all[i] is what words[i] stands for. */
struct candidates {
	const char *word[MOST + 1], *full[MOST];
	size_t n;
};

static void candidate(struct candidates *c, const char *word, const char *full)
{
	if (c->n < MOST) {
		c->word[c->n] = word;
		c->full[c->n++] = full;
		c->word[c->n] = NULL;
	}
}

static const char *nearest(const struct candidates *c, const char *word)
{
	const char *near = pen__nearest(word, c->word);

	for (size_t i = 0; near && i < c->n; i++)
		if (c->word[i] == near)
			return c->full[i];
	return NULL;
}

static bool in_section(const char *name, const char *of)
{
	const size_t n = (size_t)(last_part(of) - of);

	return n && !strncmp(name, of, n) && !strchr(name + n, '.');
}

/* The right word in the wrong place. */
static const char *misplaced(const char *word)
{
	for (const struct pen_opt *o = pen__config_opts; o->name; o++)
		if (!pen__key_in_time(o->name) &&
		    !strcmp(last_part(o->name), word))
			return o->name;
	for (const struct alias *a = aliases; a->old; a++)
		if (!strcmp(last_part(a->old), word))
			return a->now;
	return NULL;
}

const char *pen__key_suggest(const char *name)
{
	struct candidates near = { .n = 0 }, full = { .n = 0 },
			  words = { .n = 0 };
	const char *word = last_part(name), *found = misplaced(word);

	if (found)
		return found;
	for (const struct pen_opt *o = pen__config_opts; o->name; o++) {
		/* what they share in front must not make them alike */
		if (in_section(o->name, name))
			candidate(&near, last_part(o->name), o->name);
		else
			candidate(&full, o->name, o->name);
		if (!pen__key_in_time(o->name))
			candidate(&words, last_part(o->name), o->name);
	}
	found = near.n ? nearest(&near, word) : NULL;
	if (!found)
		found = pen__nearest(name, known_sections);
	if (!found)
		found = nearest(&full, name);
	return found ? found : nearest(&words, word);
}
