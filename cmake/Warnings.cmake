# Warnings, sanitizers and hardening in one place.

set(PEN_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion
	-Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wundef
	-Wvla -Wcast-qual -Wwrite-strings -Wpointer-arith -Wimplicit-fallthrough
	-Wformat=2)

# Hardening that costs nothing measurable, where the compiler has it:
# tests/check/hardened.sh looks for it in what is built.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
set(PEN_HARDENING "")
check_c_compiler_flag(-fcf-protection=full PEN_HAS_CET)
check_c_compiler_flag(-fstack-clash-protection PEN_HAS_CLASH)
if(PEN_HAS_CET)
	list(APPEND PEN_HARDENING -fcf-protection=full)
endif()
if(PEN_HAS_CLASH)
	list(APPEND PEN_HARDENING -fstack-clash-protection)
endif()
# 3 also checks buffers whose size is known only at run time
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("#include <string.h>
#if !defined(__USE_FORTIFY_LEVEL) || __USE_FORTIFY_LEVEL < 3
#error
#endif
int main(void) { return 0; }" PEN_HAS_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
set(PEN_FORTIFY 2)
if(PEN_HAS_FORTIFY_3)
	set(PEN_FORTIFY 3)
endif()

function(pen_link_options target)
	if(PEN_SANITIZE)
		target_link_options(${target} PRIVATE -fsanitize=${PEN_SANITIZE})
	endif()
	if(PEN_COVERAGE)
		target_link_options(${target} PRIVATE --coverage)
	endif()
	if(PEN_LTO)
		set_property(TARGET ${target}
			PROPERTY INTERPROCEDURAL_OPTIMIZATION ON)
	endif()
	target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
endfunction()

function(pen_options target)
	target_compile_options(${target} PRIVATE ${PEN_WARNINGS}
		-fstack-protector-strong -fno-omit-frame-pointer)
	if(PEN_WERROR)
		target_compile_options(${target} PRIVATE -Werror)
	endif()
	if(PEN_SANITIZE)
		# object-size takes a third of the time to compile, and finds
		# what the address sanitizer and bounds find
		target_compile_options(${target} PRIVATE
			-fsanitize=${PEN_SANITIZE} -fno-sanitize-recover=all
			-fno-sanitize=object-size)
	elseif(CMAKE_BUILD_TYPE MATCHES "Rel")
		target_compile_options(${target} PRIVATE ${PEN_HARDENING}
			-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${PEN_FORTIFY})
	endif()
	if(PEN_COVERAGE)
		target_compile_options(${target} PRIVATE --coverage)
	endif()
	if(PEN_LTO)
		set_property(TARGET ${target}
			PROPERTY INTERPROCEDURAL_OPTIMIZATION ON)
	endif()
endfunction()
