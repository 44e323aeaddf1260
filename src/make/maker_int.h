/* Internal to the maker. */
#ifndef PEN_MAKE_MAKER_INT_H
#define PEN_MAKE_MAKER_INT_H

#include "base/pairs.h"
#include "format/format.h"
#include "store/store.h"

struct pen_maker {
	struct pen_store *st;
	const struct pen_format_ops *ops;
	struct pen_format *f; /* shared by all threads */
	struct pen_pairs set; /* of the format */
};

#endif
