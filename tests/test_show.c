/* Numbers formatted for people: three digits, one unit, nothing absurd. */
#include "test.h"

#include <math.h>

#include "base/show.h"

static void counts(void)
{
	CHECK_STR(pen__show_count(81234).s, "81.2 k");
	CHECK_STR(pen__show_count(999).s, "999");
	CHECK_STR(pen__show_count(3).s, "3");
	CHECK_STR(pen__show_count(2.834).s, "2.83"); /* a second */
	CHECK_STR(pen__show_count(0.42).s, "0.42");
	CHECK_STR(pen__show_count(999600).s, "1.00 M");
	CHECK_STR(pen__show_count(NAN).s, "-");
	CHECK_STR(pen__show_bytes(1.35e9).s, "1.35 GB");
	CHECK_STR(pen__show_bytes(67108864).s, "67.1 MB");
	CHECK_STR(pen__show_bytes(512).s, "512 B");
	CHECK_STR(pen__show_whole(65536).s, "65,536");
	CHECK_STR(pen__show_whole(-1234.4).s, "-1,234");
	CHECK_STR(pen__show_whole(NAN).s, "-");
	CHECK_STR(pen__show_grouped(UINT64_MAX).s,
		  "18,446,744,073,709,551,615");
	CHECK_STR(pen__show_counted(1, "accelerator").s, "1 accelerator");
	CHECK_STR(pen__show_counted(0, "file").s, "0 files");
	CHECK_STR(pen__show_counted(1, "batch").s, "1 batch");
	CHECK_STR(pen__show_counted(2, "batch").s, "2 batches");
	CHECK_STR(pen__show_counted(2, "epoch").s, "2 epochs");
	CHECK_STR(pen__show_counted(1000000, "emulated accelerator").s,
		  "1,000,000 emulated accelerators");
}

static void times(void)
{
	CHECK_STR(pen__show_time(4640e-9).s, "4.6 us");
	CHECK_STR(pen__show_time(0).s, "0 s");
	CHECK_STR(pen__show_time(75e-9).s, "75 ns");
	CHECK_STR(pen__show_time(1.26e-9).s, "1.3 ns");
	CHECK_STR(pen__show_time(0.0123).s, "12.3 ms");
	CHECK_STR(pen__show_time(0.1234).s, "123 ms");
	CHECK_STR(pen__show_time(3.456).s, "3.46 s");
	CHECK_STR(pen__show_time(0.00099951).s, "1.0 ms");
	CHECK_STR(pen__show_time(0.9994e-6).s, "999 ns");
	CHECK_STR(pen__show_time(0.9996e-6).s, "1.0 us");
	CHECK_STR(pen__show_time(9.999).s, "10.0 s");
	CHECK_STR(pen__show_time(119.4).s, "119 s");
	CHECK_STR(pen__show_time(119.96).s, "2 min 00 s");
	CHECK_STR(pen__show_time(179.7).s, "3 min 00 s");
	CHECK_STR(pen__show_time(12000).s, "3 h 20 min");
	CHECK_STR(pen__show_time(NAN).s, "-");
}

/* 0 % and 100 % are shown only for exactly that. */
static void shares(void)
{
	CHECK_STR(pen__show_share(0.38).s, "38 %");
	CHECK_STR(pen__show_share(0).s, "0 %");
	CHECK_STR(pen__show_share(1).s, "100 %");
	CHECK_STR(pen__show_share(0.004).s, "0.4 %");
	CHECK_STR(pen__show_share(0.9996).s, "99.96 %");
	CHECK_STR(pen__show_percent(92.34).s, "92.3 %");
	CHECK_STR(pen__show_percent(0.004).s, "0.004 %");
	CHECK_STR(pen__show_percent(99.999).s, "99.99 %");
	CHECK_STR(pen__show_change(0.1234).s, "+12.3 %");
	CHECK_STR(pen__show_change(-0.05).s, "-5.0 %");
	CHECK_STR(pen__show_change(1.354).s, "x 2.35");
	CHECK_STR(pen__show_change(15587.016).s, "x 15,588");
	CHECK_STR(pen__show_change(-0.988).s, "x 0.012");
	CHECK_STR(pen__show_change(-1).s, "-100.0 %");
	CHECK_STR(pen__show_change(NAN).s, "-");
}

static void numbers(void)
{
	CHECK_STR(pen__show_number(4.21).s, "4.2");
	CHECK_STR(pen__show_number(0.05).s, "0.050");
	CHECK_STR(pen__show_number(0.15).s, "0.15");
	CHECK_STR(pen__show_number(0).s, "0.0");
	CHECK_STR(pen__show_number(1024).s, "1,024");
}

int main(void)
{
	counts();
	times();
	shares();
	numbers();
	return test_end();
}
