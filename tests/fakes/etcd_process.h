// A real etcd on loopback for one test: its data in a temporary directory, ended with the object, or with the test's
// process. For one thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "testing.h"

namespace weft::testing {

class EtcdProcess {
 public:
  // `arguments` beside those for addresses and data. Throws when there is no etcd or it does not come up.
  enum class Wire { plain, tls };  // tls: it asks for a client's certificate too
  explicit EtcdProcess(std::vector<std::string> arguments = {}, Wire wire = Wire::plain);
  ~EtcdProcess() { kill(); }
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  // Of tls: the certificate of server and client, which signs itself, and its key.
  std::string certificate() const { return dir_ / "cert.pem"; }
  std::string key() const { return dir_ / "key.pem"; }

  void kill();      // SIGKILL; what it has said to have stored stays
  void restart();   // with the same data and address
  void forget();    // kills it and removes its data
  void save();      // a copy of its data, for set_back()
  void set_back();  // restarts it with the data of save()
  void pause();     // SIGSTOP: accepts connections, answers nothing
  void resume();
  // Runs etcdctl with these arguments against it.
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
