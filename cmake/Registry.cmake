# One line registers an implementation: pen_format(npy), pen_store(uring NEEDS
# URING). The source file is compiled in and an entry is written to the list
# that registry.c includes; a missing library leaves both out. IN names the
# source where it is not NAME.c; several may be in one.

function(pen_register kind name)
	cmake_parse_arguments(ARG "" "NEEDS;IN" "" ${ARGN})
	if(NOT ARG_IN)
		set(ARG_IN ${name})
	endif()
	set_property(DIRECTORY APPEND PROPERTY PEN_REGISTERED ${ARG_IN}.c)
	if(ARG_NEEDS)
		if(NOT ${ARG_NEEDS}_FOUND)
			message(STATUS
				"penstock: no ${kind} '${name}': ${ARG_NEEDS} not found")
			set_property(GLOBAL APPEND PROPERTY PEN_ABSENT_${kind}
				"PEN_ABSENT(${name}, \"${ARG_NEEDS}\")\n")
			return()
		endif()
		target_link_libraries(pen_core PUBLIC PkgConfig::${ARG_NEEDS})
		set_property(GLOBAL APPEND PROPERTY PEN_LIBS
			PkgConfig::${ARG_NEEDS})
	endif()
	get_target_property(sources pen_core SOURCES)
	if(NOT ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_IN}.c IN_LIST sources)
		target_sources(pen_core PRIVATE
			${CMAKE_CURRENT_SOURCE_DIR}/${ARG_IN}.c)
	endif()
	set_property(GLOBAL APPEND PROPERTY PEN_ENTRIES_${kind}
		"PEN_ENTRY(${name})\n")
endfunction()

macro(pen_store)
	pen_register(store ${ARGN})
endmacro()
macro(pen_format)
	pen_register(format ${ARGN})
endmacro()
macro(pen_cells)
	pen_register(cells ${ARGN})
endmacro()
macro(pen_codec)
	pen_register(codec ${ARGN})
endmacro()
macro(pen_packer)
	pen_register(packer ${ARGN})
endmacro()
macro(pen_decoder)
	pen_register(decoder ${ARGN} IN decode_${ARGV0})
endmacro()
macro(pen_token)
	pen_register(token ${ARGN})
endmacro()
macro(pen_sampler)
	pen_register(sampler ${ARGN})
endmacro()

# Writes gen/<kind>_list.h; call once, after the registrations.
function(pen_registry kind)
	get_property(entries GLOBAL PROPERTY PEN_ENTRIES_${kind})
	get_property(absent GLOBAL PROPERTY PEN_ABSENT_${kind})
	list(JOIN entries "" entries)
	list(JOIN absent "" absent)
	file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/gen/${kind}_list.h
		CONTENT "${entries}")
	file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/gen/${kind}_absent.h
		CONTENT "${absent}")
endfunction()

# Compiles all other sources of this directory into the library:
# pen_sources([EXCEPT FILE...])
function(pen_sources)
	cmake_parse_arguments(ARG "" "" "EXCEPT" ${ARGN})
	file(GLOB sources CONFIGURE_DEPENDS
		RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.c)
	get_property(registered DIRECTORY PROPERTY PEN_REGISTERED)
	list(REMOVE_ITEM sources ${registered} ${ARG_EXCEPT})
	target_sources(pen_core PRIVATE ${sources})
endfunction()

function(pen_link target scope)
	get_property(libs GLOBAL PROPERTY PEN_LIBS)
	target_link_libraries(${target} ${scope}
		Threads::Threads PkgConfig::DEFLATE ${libs} m
		${CMAKE_DL_LIBS})
	pen_link_options(${target})
endfunction()
