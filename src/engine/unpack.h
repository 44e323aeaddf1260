/* The unpack stage: a shared unit's bytes become its payload. */
#ifndef PEN_ENGINE_UNPACK_H
#define PEN_ENGINE_UNPACK_H

#include "engine/worker.h"

int pen__unpack(struct pen_worker *, struct pen_live *, struct pen_span raw,
		struct pen_err *err);

#endif
