package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// How the client authenticates: KSHIM_SECURITY, as secured.py has it.
type security struct {
	Protocol, Mechanism, User, Password, Token, CA, Certificate, Key string
}

// The options that every client of this process has.
var secured = securityOptions()

func securityOptions() []kgo.Opt {
	options := []kgo.Opt{}
	told := os.Getenv("KSHIM_SECURITY")
	if told == "" {
		return options
	}
	var asked security
	if err := json.Unmarshal([]byte(told), &asked); err != nil {
		panic(err)
	}
	switch asked.Mechanism {
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: asked.User, Pass: asked.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(scram.Auth{User: asked.User, Pass: asked.Password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(scram.Auth{User: asked.User, Pass: asked.Password}.AsSha512Mechanism()))
	case "OAUTHBEARER":
		options = append(options, kgo.SASL(oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			return oauth.Auth{Token: asked.Token}, nil
		})))
	}
	if strings.HasSuffix(asked.Protocol, "SSL") {
		options = append(options, kgo.DialTLSConfig(tlsConfig(asked)))
	}
	return options
}

func tlsConfig(asked security) *tls.Config {
	authority, err := os.ReadFile(asked.CA)
	if err != nil {
		panic(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if asked.Certificate != "" {
		own, err := tls.LoadX509KeyPair(asked.Certificate, asked.Key)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config
}
