/*
 * The file that torch.save() writes: a zip archive of stored members, one
 * pickle that says what the tensors are, and one member per tensor. Written
 * and read as a stream: a tensor is never in memory as a whole. Only what
 * checkpoints are made of is known: dicts of one-dimensional tensors, at most
 * two deep.
 */
#ifndef PEN_MAKE_TORCH_FILE_H
#define PEN_MAKE_TORCH_FILE_H

#include "base/bytes.h"
#include "base/peek.h"

enum pen_state_dtype { /* of checkpoint tensors */
		       PEN_SD_INT8,
		       PEN_SD_UINT8,
		       PEN_SD_FP16,
		       PEN_SD_BF16,
		       PEN_SD_FP32,
		       PEN_SD_FP64
};

/* What is in a file, in the order of its dicts. */
enum pen_torch_kind {
	PEN_TORCH_TENSOR, /* key: n elements of dtype */
	PEN_TORCH_OPEN,	  /* key: a dict begins */
	PEN_TORCH_CLOSE,  /* and ends */
	PEN_TORCH_SAME	  /* key: the first dict once more, stored once */
};
struct pen_torch_item {
	enum pen_torch_kind kind;
	int dtype; /* enum pen_state_dtype */
	uint64_t n;
	char key[24];
};
struct pen_torch_state {
	struct pen_torch_item *item;
	size_t nitems, cap;
	size_t ntensors;
	uint64_t bytes; /* of all tensors */
};

/* 0, PEN_ENOMEM, or PEN_EINVAL when the bytes pass 2^62. */
int pen__torch_add(struct pen_torch_state *, enum pen_torch_kind,
		   const char *key, int dtype, uint64_t n);
void pen__torch_fini(struct pen_torch_state *);
size_t pen__torch_size(int dtype);	   /* bytes of an element */
const char *pen__torch_storage(int dtype); /* "CharStorage" */

/* The pickle, byte by byte as Python's protocol 2 has it. */
void pen__torch_pickle(const struct pen_torch_state *, struct pen_buf *out);

/* Where a tensor's bytes are: the member data/KEY. */
struct pen_torch_key {
	char s[24];
};
/*
 * Checks that a pickle, whoever wrote it, describes just this state, and fills
 * key[ntensors], which comes zeroed.
 */
int pen__torch_unpickle(const struct pen_torch_state *, struct pen_span pickle,
			const char *where, struct pen_torch_key *key,
			struct pen_err *err);

struct pen_torch_piece { /* bytes [off, off + n) of a tensor */
	size_t tensor;
	int dtype;
	uint64_t off;
	size_t n;
};

/* Where a file goes, and where the bytes of its tensors come from. */
struct pen_torch_sink {
	void *arg;
	/* Memory for the next bytes of the file, *n of them, at least one;
	 * NULL after a failure that the sink knows. */
	uint8_t *(*room)(void *arg, size_t *n);
	void (*put)(void *arg, size_t n); /* n of them are filled */
	void (*make)(void *arg, const struct pen_torch_piece *, uint8_t *to);
};
/* 0; PEN_ENOMEM; PEN_EIO with err untouched when the sink failed. */
int pen__torch_write(const struct pen_torch_state *, struct pen_torch_sink *,
		     const char *where, struct pen_err *err);

/* Where a file comes from. */
struct pen_torch_source {
	void *arg;
	struct pen_peek *peek; /* its directory and pickle */
	/* The next bytes of the file, all of it in order; NULL: failed, and
	 * err says why. Never called past the end. */
	const uint8_t *(*next)(void *arg, size_t *n, struct pen_err *err);
	/* Looks at bytes of a tensor: n when they are right, else how many
	 * are before the first wrong one. NULL: nobody asks. */
	size_t (*check)(void *arg, const struct pen_torch_piece *,
			const uint8_t *p);
};
/* Reads every byte; checks structure, checksums and content. */
int pen__torch_read(const struct pen_torch_state *, struct pen_torch_source *,
		    struct pen_err *err);

#endif
