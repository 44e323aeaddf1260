/*
 * The file that torch.save() writes: a zip archive of stored members, with one
 * pickle that describes the tensors and one member per tensor. Written and read
 * as a stream: a tensor is never completely in memory. Supports only what
 * checkpoints consist of: dicts of one-dimensional tensors, nested at most
 * twice.
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

/* The contents of a file, in the order of its dicts. */
enum pen_torch_kind {
	PEN_TORCH_TENSOR, /* key: n elements of dtype */
	PEN_TORCH_OPEN,	  /* key: start of a dict */
	PEN_TORCH_CLOSE,  /* end of a dict */
	PEN_TORCH_SAME	  /* key: the first dict again, stored once */
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

/* 0, PEN_ENOMEM, or PEN_EINVAL if the bytes exceed 2^62. */
int pen__torch_add(struct pen_torch_state *, enum pen_torch_kind,
		   const char *key, int dtype, uint64_t n);
void pen__torch_fini(struct pen_torch_state *);
size_t pen__torch_size(int dtype);	   /* bytes of an element */
const char *pen__torch_storage(int dtype); /* "CharStorage" */

/* The pickle, exactly as Python's protocol 2 writes it. */
void pen__torch_pickle(const struct pen_torch_state *, struct pen_buf *out);

/* The location of a tensor's bytes: the member data/KEY. */
struct pen_torch_key {
	char s[24];
};
/*
 * Checks that a pickle from any writer describes exactly this state, and fills
 * key[ntensors], which must be zeroed.
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

/* The destination of a file, and the source of its tensors' bytes. */
struct pen_torch_sink {
	void *arg;
	/* Memory for the next bytes of the file, *n of them, at least one;
	 * NULL after a failure, which the sink keeps. */
	uint8_t *(*room)(void *arg, size_t *n);
	void (*put)(void *arg, size_t n); /* n of them are filled in */
	void (*make)(void *arg, const struct pen_torch_piece *, uint8_t *to);
};
/* 0; PEN_ENOMEM; PEN_EIO with err unchanged if the sink failed. */
int pen__torch_write(const struct pen_torch_state *, struct pen_torch_sink *,
		     const char *where, struct pen_err *err);

/* The source of a file. */
struct pen_torch_source {
	void *arg;
	struct pen_peek *peek; /* for its directory and pickle */
	/* The next bytes of the file, sequentially; NULL: failed, with err
	 * set. Never called past the end. */
	const uint8_t *(*next)(void *arg, size_t *n, struct pen_err *err);
	/* Checks bytes of a tensor: returns n if they are right, else the
	 * number before the first wrong one. NULL: no check. */
	size_t (*check)(void *arg, const struct pen_torch_piece *,
			const uint8_t *p);
};
/* Reads every byte and checks structure, checksums and content. */
int pen__torch_read(const struct pen_torch_state *, struct pen_torch_source *,
		    struct pen_err *err);

#endif
