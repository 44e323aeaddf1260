/* The values of a dictionary as objects, for code that knows the ranks. */
#ifndef PEN_STORE_DICT_VALUES_H
#define PEN_STORE_DICT_VALUES_H

#include "store/store.h"

#define PEN_DICT_PREFIX "ddict:"

struct pen_comm;
struct pen_ddict;

/* Where a dictionary comes from, and who else loads from it. */
struct pen_dict_source {
	struct pen_ddict *given; /* the caller's, or NULL: opened by its path */
	/* Ranks that all list the same keys, or NULL; they stay the caller's.
	 * Listing and closing are collective then. */
	struct pen_comm *comm;
	uint64_t world, batch; /* for local=true */
};

/* Before anything is listed. Another store: no effect. */
void pen__dict_join(struct pen_store *, const struct pen_dict_source *);
/* Whether it has met the other ranks: from then on they know of errors. NULL,
 * or another store: false. */
bool pen__dict_met(const struct pen_store *);
/* Was local=true set? Another store: false. */
bool pen__dict_local(const struct pen_store *);

/* Keys in the order of the samples. (dict_keys.c) */
struct pen_dict_keys {
	struct pen_key *key;
	uint64_t n, cap;
	struct pen_buf bytes; /* of keys; their offsets until settled */
};
int pen__dict_keys_add(struct pen_dict_keys *, struct pen_key);
/* After the last was added: keys point to their bytes. */
void pen__dict_keys_settle(struct pen_dict_keys *);
void pen__dict_keys_fini(struct pen_dict_keys *);
/* Integers in numeric order, then bytes in bytewise order. */
int pen__dict_key_compare(const void *, const void *);
/*
 * What keys= names: a range START:STOP[:STEP], an .npy file of integers, a text
 * file with one key per line, or keys separated by commas. A word of digits is
 * an integer; %XX stands for a byte, and % alone for no bytes.
 */
int pen__dict_keys_parse(struct pen_dict_keys *, const char *text,
			 struct pen_err *);
/* A key as such a word, cut if it is long. */
struct pen_dict_name {
	char s[256];
};
struct pen_dict_name pen__dict_name(struct pen_key);

#endif
