# What `cmake --install` puts in place, by GNUInstallDirs. The component weftd is what a node with a daemon adds to weft.
# The packages of cmake/packages.cmake hold the same files.
include(GNUInstallDirs)
set(WEFT_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING
    "Where zsh looks for completions (Debian's packages: share/zsh/vendor-completions)")
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS  # whatever the umask is
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# The programs of the build folder find each other as the installed ones do: beside themselves (os/programs.h). mount(8)
# looks for a program by the file system's type, which is weft or, as the kernel shows it, fuse.weft.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fuse ${CMAKE_BINARY_DIR}/installed)
file(CREATE_LINK mount.weft ${CMAKE_BINARY_DIR}/fuse/mount.fuse.weft SYMBOLIC)
file(CREATE_LINK ../src/cli/weft ${CMAKE_BINARY_DIR}/fuse/weft SYMBOLIC)
file(CREATE_LINK ../../fuse/mount.weft ${CMAKE_BINARY_DIR}/src/cli/mount.weft SYMBOLIC)
if(WEFT_DAEMON)
  file(CREATE_LINK ../../daemon/weftd ${CMAKE_BINARY_DIR}/src/cli/weftd SYMBOLIC)
endif()
install(TARGETS weft RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT weft)
if(WEFT_STATIC)  # one file is both programs
  file(RELATIVE_PATH from_sbin ${CMAKE_INSTALL_FULL_SBINDIR} ${CMAKE_INSTALL_FULL_BINDIR}/weft)
  file(CREATE_LINK ../src/cli/weft ${CMAKE_BINARY_DIR}/fuse/mount.weft SYMBOLIC)
  file(CREATE_LINK ${from_sbin} ${CMAKE_BINARY_DIR}/installed/mount.weft SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/installed/mount.weft DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT weft)
else()
  install(TARGETS mount.weft RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT weft)
endif()
install(FILES ${CMAKE_BINARY_DIR}/fuse/mount.fuse.weft DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT weft)

#   weft_install_compressed(FILE DIRECTORY COMPONENT)    installs FILE.gz, compressed when it is installed
function(weft_install_compressed file directory component)
  get_filename_component(path ${file} ABSOLUTE)
  install(CODE "
    set(file \"${path}\")
    set(directory \"${directory}\")
    set(work \"${CMAKE_BINARY_DIR}/installed\")" COMPONENT ${component})
  install(SCRIPT cmake/install_compressed.cmake COMPONENT ${component})
endfunction()

#   weft_install_page(PAGE COMPONENT)    a man page, such as weft.1
function(weft_install_page page component)
  string(REGEX REPLACE ".*\\." "" section ${page})
  weft_install_compressed(man/${page} ${CMAKE_INSTALL_MANDIR}/man${section} ${component})
endfunction()

# The papers that belong to a package, which has its component's name. cmake/packages.cmake writes the changelog.
function(weft_install_papers component)
  set(directory ${CMAKE_INSTALL_DATAROOTDIR}/doc/${component})
  install(FILES cmake/debian/copyright DESTINATION ${directory} COMPONENT ${component})
  weft_install_compressed(${CMAKE_BINARY_DIR}/installed/changelog ${directory} ${component})
endfunction()

foreach(page weft.1 weft-store.5 weft.conf.5 weft.7 weft-cluster.7 weft-find.7 weft-registry.7 mount.weft.8)
  weft_install_page(${page} weft)
endforeach()
weft_install_papers(weft)
install(FILES scripts/completions/weft.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME weft
        COMPONENT weft)
install(FILES scripts/completions/weft.zsh DESTINATION ${WEFT_ZSH_DIR} RENAME _weft COMPONENT weft)
install(FILES scripts/completions/weft.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT weft)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT weft)

if(WEFT_DAEMON)
  install(TARGETS weftd RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT weftd)
  weft_install_page(weftd.8 weftd)
  weft_install_papers(weftd)
  install(FILES daemon/grafana/weft.json daemon/prometheus/weft.rules.yml DESTINATION ${CMAKE_INSTALL_DATADIR}/weftd
          COMPONENT weftd)
  install(FILES daemon/systemd/weft-scrub.timer DESTINATION lib/systemd/system COMPONENT weftd)
  install(FILES daemon/systemd/weftd.sysusers DESTINATION lib/sysusers.d RENAME weftd.conf COMPONENT weftd)
  install(FILES daemon/systemd/weftd.tmpfiles DESTINATION lib/tmpfiles.d RENAME weftd.conf COMPONENT weftd)
  # `cmake --install --prefix` may still change the prefix: units name the programs where these are installed, and the
  # settings of /usr are in /etc.
  install(CODE "
    set(units \"${CMAKE_CURRENT_SOURCE_DIR}/daemon/systemd\")
    set(configured \"${CMAKE_BINARY_DIR}/daemon/systemd\")
    set(example \"${CMAKE_CURRENT_SOURCE_DIR}/daemon/weft.conf.example\")
    set(bin \"${CMAKE_INSTALL_BINDIR}\")
    set(sbin \"${CMAKE_INSTALL_SBINDIR}\")
    set(etc \"${CMAKE_INSTALL_SYSCONFDIR}\")" COMPONENT weftd)
  install(SCRIPT cmake/install_daemon.cmake COMPONENT weftd)
endif()
