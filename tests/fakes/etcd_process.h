// A real etcd on loopback for one test. Its data is in a temporary directory. It ends with the object, or with the
// test's process. For one thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "testing.h"

namespace weft::testing {

class EtcdProcess {
 public:
  // `arguments` are added to those for addresses and data. Throws if etcd is not installed or does not start.
  enum class Wire { plain, tls };  // tls: the server requires a client certificate too
  explicit EtcdProcess(std::vector<std::string> arguments = {}, Wire wire = Wire::plain);
  ~EtcdProcess() { kill(); }
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  // With tls: the self-signed certificate of server and client, and its key.
  std::string certificate() const { return dir_ / "cert.pem"; }
  std::string key() const { return dir_ / "key.pem"; }

  void kill();     // SIGKILL; acknowledged writes survive
  void restart();  // with the same data and address
  // Sets the arguments for the next starts. Not with tls.
  void argue(std::vector<std::string> arguments) { arguments_ = std::move(arguments); }
  void forget();  // kills it and deletes its data
  // Copies its data to a new copy of this name.
  void save(const std::string& name = "saved");
  void set_back(const std::string& name = "saved");  // restarts it with the copy
  void pause();                                      // SIGSTOP: it accepts connections and answers nothing
  void resume();
  // Runs etcdctl with these arguments on this etcd.
  void control(const std::vector<std::string>& arguments) const;

 private:
  void start();
  bool run_control(const std::vector<std::string>& arguments) const;
  TempDir dir_;
  void make_certificate();
  const Wire wire_;
  std::vector<std::string> arguments_;
  std::uint16_t port_ = 0;  // of endpoint_
  std::string endpoint_, peer_;
  pid_t pid_ = 0;
};

}  // namespace weft::testing
