# What `cpack` makes of what `cmake --install` puts in place: a Debian package of each component, for the release of Debian
# that this is. scripts/package deb calls it in a build whose prefix is /usr.
set(WEFT_MAINTAINER "weft maintainers <maintainers@weft.example>" CACHE STRING "Who answers for the packages")
set(WEFT_DEB_VERSION ${PROJECT_VERSION})
set(WEFT_DEB_SUITE unstable)
cmake_host_system_information(RESULT host QUERY DISTRIB_INFO)
if(host_ID STREQUAL "debian" AND host_VERSION_ID)
  # Libraries differ between releases, and the package of a newer one is an upgrade.
  set(WEFT_DEB_VERSION ${PROJECT_VERSION}+deb${host_VERSION_ID})
  set(WEFT_DEB_SUITE ${host_VERSION_CODENAME})
endif()
string(TIMESTAMP WEFT_CHANGELOG_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)  # $SOURCE_DATE_EPOCH, if it is set
configure_file(cmake/debian/changelog.in ${CMAKE_BINARY_DIR}/installed/changelog @ONLY)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_CONTACT ${WEFT_MAINTAINER})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_SOURCE_DIR}/build/packages)
set(CPACK_COMPONENTS_ALL weft)
if(WEFT_DAEMON)
  list(APPEND CPACK_COMPONENTS_ALL weftd)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_VERSION ${WEFT_DEB_VERSION})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

# cpack indents the lines of a description. A line with a full stop ends a paragraph.
set(CPACK_DEBIAN_WEFT_PACKAGE_NAME weft)
set(CPACK_DEBIAN_WEFT_DESCRIPTION "weights of deep-learning models as a file tree
weft keeps models in a store, each distinct tensor once, and mounts the
store. Each version of each model is a directory of ordinary files, which
PyTorch, safetensors, transformers, numpy and the shell read unchanged.
.
This package has the command line and the FUSE server, for one machine.")
set(CPACK_DEBIAN_WEFT_PACKAGE_RECOMMENDS fuse3)  # fusermount3, by which ordinary users mount
set(CPACK_DEBIAN_WEFT_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/cmake/debian/weft/postrm)

set(CPACK_DEBIAN_WEFTD_PACKAGE_NAME weftd)
set(CPACK_DEBIAN_WEFTD_DESCRIPTION "daemon of a node in a weft cluster
The nodes of a cluster share one catalog of models and fetch their bytes
from each other and from a shared directory. One machine needs no daemon.
.
This package has the daemon, its systemd units, and a timer that reads
the store for damaged bytes each night.")
set(CPACK_DEBIAN_WEFTD_PACKAGE_DEPENDS "weft (= ${WEFT_DEB_VERSION}), passwd")  # postinst calls groupadd
set(CPACK_DEBIAN_WEFTD_PACKAGE_SUGGESTS etcd-server)
set(debian ${CMAKE_CURRENT_SOURCE_DIR}/cmake/debian/weftd)
set(CPACK_DEBIAN_WEFTD_PACKAGE_CONTROL_EXTRA ${debian}/conffiles ${debian}/postinst ${debian}/prerm ${debian}/postrm)
include(CPack)
