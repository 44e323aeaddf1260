# Warnings, sanitizers and hardening in one place.

set(PEN_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion
	-Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wundef
	-Wvla -Wcast-qual -Wwrite-strings -Wpointer-arith -Wimplicit-fallthrough
	-Wformat=2)

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
	target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now)
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
		target_compile_definitions(${target} PRIVATE _FORTIFY_SOURCE=2)
	endif()
	if(PEN_COVERAGE)
		target_compile_options(${target} PRIVATE --coverage)
	endif()
	if(PEN_LTO)
		set_property(TARGET ${target}
			PROPERTY INTERPROCEDURAL_OPTIMIZATION ON)
	endif()
endfunction()
